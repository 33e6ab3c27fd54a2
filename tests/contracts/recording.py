"""Every request and answer of a stand-in as it was on the wire, judged by GitHub's description when the world closes."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.contracts.github_api import OURS, Exchange, description, plain


@dataclass(slots=True)
class Recorder:
    """Wraps the stand-in's application. Answers that a test had injected as faults are not the stand-in's own and not judged."""

    faults: list[str] = field(default_factory=list)
    ours: set[str] = field(default_factory=set)
    """The operations that the product itself asked for."""

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def recorded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            asked: list[bytes] = []
            answered: list[Message] = []

            async def hear() -> Message:
                message = await receive()
                asked.append(message.get("body", b""))
                return message

            async def say(message: Message) -> None:
                answered.append(message)
                await send(message)

            await app(scope, hear, say)
            self._judge(scope, b"".join(asked), answered)

        return recorded

    def _judge(self, scope: Scope, asked: bytes, answered: list[Message]) -> None:
        asked_with = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not answered:
            return  # whoever stands around the stand-in kept its answer back
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in answered[0]["headers"]}
        if "x-stand-in-fault" in headers:
            return
        seen = Exchange(
            method=scope["method"],
            path=scope["raw_path"].split(b"?")[0].decode("latin-1"),
            query=scope["query_string"].decode("latin-1"),
            asked=asked,
            status=answered[0]["status"],
            agent=asked_with.get("user-agent", ""),
            accept=asked_with.get("accept", ""),
            media_type=headers.get("content-type", ""),
            version=headers.get("x-github-api-version-selected", ""),
            answered=b"".join(message.get("body", b"") for message in answered[1:]),
        )
        self.faults += description().faults(seen)
        operation = description().find(seen.method, plain(seen.path))
        if operation is not None and seen.agent == OURS:
            self.ours.add(operation.name)
