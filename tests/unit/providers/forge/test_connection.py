"""The App's key, read once."""

from __future__ import annotations

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.domain.errors import UserError
from bot.providers.forge.connection import signing_key

_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _pem(protection: serialization.KeySerializationEncryption) -> str:
    return _KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, protection
    ).decode()


def test_what_it_signs_is_the_apps():
    signed = jwt.encode({"iss": "1"}, signing_key(_pem(serialization.NoEncryption())), "RS256")
    assert jwt.decode(signed, _KEY.public_key(), algorithms=["RS256"]) == {"iss": "1"}


@pytest.mark.parametrize(
    "pem",
    [
        "",
        _pem(serialization.NoEncryption()).replace("A", "B"),
        _pem(serialization.BestAvailableEncryption(b"a password")),
        _KEY.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode(),
    ],
    ids=["empty", "damaged", "with a password", "a public key"],
)
def test_what_is_no_key_is_said_with_what_to_do(pem: str):
    with pytest.raises(UserError, match="cannot be used") as refused:
        signing_key(pem)
    assert "PULLWRIGHT_PRIVATE_KEY_FILE" in refused.value.hint
    assert pem[:40] not in str(refused.value) or not pem
