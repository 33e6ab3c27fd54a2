#!/bin/sh
# Run a command as a user without any right, who may reach this checkout and its Python and write to a home of its own.
# As root: in a mount namespace of its own, where directories that shut that user out are opened for these two. Otherwise: just run it.
set -eu

export PYTHONDONTWRITEBYTECODE=1
if [ "$(id -u)" != 0 ]; then exec "$@"; fi

user=${ORDINARY_UID:-23456}
home=$(mktemp -d /tmp/pullwright-ordinary-XXXXXX)
chown "$user:$user" "$home"
trap 'rm -rf "$home"' EXIT
python=$(.venv/bin/python -c 'import sys; print(sys.base_prefix)')

# The first directory on the way to a path that others may not enter.
closed() {
  way=
  IFS=/
  for part in ${1#/}; do
    way=$way/$part
    [ -n "$(find "$way" -maxdepth 0 ! -perm -o+x)" ] && { echo "$way"; break; }
  done
  unset IFS
}

inside='
set -eu
number=0
mount -t tmpfs -o mode=755 pullwright /mnt
for pair in $1; do
  number=$((number + 1)); mkdir "/mnt/$number"; mount --bind "${pair#*:}" "/mnt/$number"
done
number=0
for pair in $1; do
  number=$((number + 1)); path=${pair#*:}; shut=${pair%%:*}
  [ -n "$(find "$shut" -maxdepth 0 ! -perm -o+x)" ] && mount -t tmpfs -o mode=755 pullwright "$shut"
  mkdir -p "$path"; mount --move "/mnt/$number" "$path"
done
user=$2 home=$3; shift 3
exec setpriv "--reuid=$user" "--regid=$user" --clear-groups --bounding-set=-all --inh-caps=-all -- \
  env -i "HOME=$home" "TMPDIR=$home" PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 "$@"
'
pairs=
for path in "$python" "$PWD"; do
  shut=$(closed "$path")
  [ -n "$shut" ] && pairs="$pairs $shut:$path"
done
unshare --mount --propagation private -- sh -c "$inside" sh "$pairs" "$user" "$home" "$@"
