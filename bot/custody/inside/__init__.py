"""The other end of the line: runs inside the sandbox, standard library only, and nothing it says is believed.

`export.script` packs this room into one file for `python3 -I`. It must run on whatever Python 3.8 or newer stands there.
"""
