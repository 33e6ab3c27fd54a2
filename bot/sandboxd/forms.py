"""The files of a form, read as they come, so that a form of any size needs neither memory nor disk outside its sandbox."""

from __future__ import annotations

from python_multipart.multipart import MultipartParser, parse_options_header

_MOST_FILES = 10_000

Piece = str | bytes | None
"""The name of a file that begins, bytes of it, or its end."""


class FormFiles:
    """Parts named `file`; what else the form has is passed over. Every method raises ValueError for what is no such form."""

    def __init__(self, content_type: str) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise ValueError("the body is neither a form of files nor application/octet-stream")
        self.complete = False
        self._pieces: list[Piece] = []
        self._files = 0
        self._wanted = False
        self._header, self._value, self._disposition = b"", b"", b""
        self._parser = MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": self._part,
                "on_header_field": lambda data, start, end: self._named(data[start:end]),
                "on_header_value": lambda data, start, end: self._valued(data[start:end]),
                "on_header_end": self._header_ends,
                "on_headers_finished": self._begins,
                "on_part_data": lambda data, start, end: self._filled(data[start:end]),
                "on_part_end": self._ends,
                "on_end": self._over,
            },
        )

    def feed(self, data: bytes) -> list[Piece]:
        """What these bytes of the body bring, in order."""
        self._parser.write(data)
        pieces, self._pieces = self._pieces, []
        return pieces

    def _part(self) -> None:
        self._wanted, self._disposition = False, b""

    def _named(self, data: bytes) -> None:
        self._header += data

    def _valued(self, data: bytes) -> None:
        self._value += data

    def _header_ends(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _begins(self) -> None:
        _, options = parse_options_header(self._disposition)
        if options.get(b"name") != b"file":
            return
        if b"filename" not in options:
            raise ValueError("a part named 'file' is not a file")
        self._wanted, self._files = True, self._files + 1
        if self._files > _MOST_FILES:
            raise ValueError(f"more than {_MOST_FILES} files")
        self._pieces.append(options[b"filename"].decode("utf-8", "replace"))

    def _filled(self, data: bytes) -> None:
        if self._wanted:
            self._pieces.append(data)

    def _ends(self) -> None:
        if self._wanted:
            self._pieces.append(None)

    def _over(self) -> None:
        self.complete = True
