# One image for web and worker. Sandboxes: set E2B_API_KEY, or run with user namespaces allowed (see docs/operating.md).
FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv git bubblewrap ca-certificates \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/pullwright
COPY requirements requirements
RUN python3 -m venv .venv && .venv/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/runtime.txt \
 && python3 -m venv .venv-semgrep && .venv-semgrep/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/semgrep.txt \
 && python3 -m venv .venv-sandbox && .venv-sandbox/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/sandbox.txt
COPY bot bot
COPY policies policies
COPY app.yml app.yml
COPY scripts/pullwright .venv/bin/pullwright
RUN useradd --system --create-home --home-dir /var/lib/pullwright pullwright
USER pullwright
ENV PULLWRIGHT_HOME=/var/lib/pullwright/data PULLWRIGHT_HOST=0.0.0.0 PATH=/opt/pullwright/.venv/bin:/usr/bin:/bin
EXPOSE 8787
HEALTHCHECK CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/healthz', timeout=3)"]
ENTRYPOINT ["pullwright"]
CMD ["serve"]
