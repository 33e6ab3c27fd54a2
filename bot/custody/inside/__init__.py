"""The other end of the line: runs inside the sandbox, standard library only, and nothing it says is believed.

`custody/script.py` packs this room into one file, which is run again for each act: what it imports is what most acts cost. It must run
on whatever Python 3.8 or newer stands there.
"""
