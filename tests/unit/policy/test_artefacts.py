"""What may be shown as visual proof: by name, by size, by content."""

from __future__ import annotations

import pytest

from bot.policy.artefacts import Found, against, listed, wanted
from bot.policy.limits import Limits
from bot.prompting import mask_secrets

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)
SECRET = b"token ghp_" + b"A1b2C3d4E5f6" * 3


def judged(name: str, data: bytes) -> str:
    return against(name, data, mask_secrets(data.decode("utf-8", "replace")))


def test_a_listing_is_read_whatever_the_names_hold() -> None:
    assert listed("12 b.png\x003 a.txt\x00") == (Found("a.txt", 3), Found("b.png", 12))
    assert listed("") == ()
    assert listed("x\n5 odd\x00") == (Found("x\n5 odd", 0),)


@pytest.mark.parametrize("name", ["shot.png", "page-2.wide.jpeg", "a.gif", "b.webp", "run.log", "A_1.txt"])
def test_plain_names_of_images_and_texts_are_wanted(name: str) -> None:
    assert wanted([Found(name, 10)], Limits()) == ((Found(name, 10),), ())


@pytest.mark.parametrize(
    "name",
    [
        "x.svg",
        "x.html",
        "x.png.exe",
        ".png",
        "../x.png",
        "a/b.png",
        "x y.png",
        "-x.png",
        "x\n.png",
        "x](y).png",
        "x.PNG",
    ],
)
def test_other_names_are_refused_and_shown_inert(name: str) -> None:
    kept, refused = wanted([Found(name, 10)], Limits())
    assert kept == ()
    assert len(refused) == 1
    assert "\n" not in refused[0]
    assert "](" not in refused[0]


def test_what_is_too_large_or_too_much_is_refused() -> None:
    limits = Limits(artefact_files=2, artefact_bytes=100)
    kept, refused = wanted([Found(f"{n}.png", 101 if n == 0 else 100) for n in range(5)], limits)
    assert [one.name for one in kept] == ["1.png", "2.png"]
    assert ["more than 100" in refused[0], "more than 2 files" in refused[1], len(refused)] == [True, True, 3]
    assert wanted([Found("a.png", 1)], Limits(artefact_files=0))[0] == ()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.png", PNG),
        ("a.jpg", b"\xff\xd8\xff" + bytes(9)),
        ("a.gif", b"GIF89a"),
        ("a.webp", b"RIFF1234WEBP"),
        ("a.txt", "größer\n".encode()),
    ],
)
def test_content_that_is_what_its_name_says_is_kept(name: str, data: bytes) -> None:
    assert judged(name, data) == ""


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.png", b"<svg onload=alert(1)>", "no PNG image"),
        ("a.gif", PNG, "no GIF image"),
        ("a.txt", b"\xff\xfe", "no text"),
        ("a.log", b"a\0b", "nobody sees"),
        ("a.log", "a\u202eb".encode(), "nobody sees"),
        ("a.txt", SECRET, "credential"),
    ],
)
def test_content_that_is_not_is_refused(name: str, data: bytes, words: str) -> None:
    assert words in judged(name, data)
