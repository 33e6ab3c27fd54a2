"""Text hygiene: templates for the model, cleaning of what comes in, neutralising of what goes out."""

from __future__ import annotations

from bot.prompting.inbound import Cleaned, clean_untrusted, fence_untrusted
from bot.prompting.outbound import Limits, publishable, publishable_line
from bot.prompting.secrets import mask_secrets
from bot.prompting.templates import render
from bot.prompting.unicode import encodable, whole_json

__all__ = [
    "Cleaned",
    "Limits",
    "clean_untrusted",
    "encodable",
    "fence_untrusted",
    "mask_secrets",
    "publishable",
    "publishable_line",
    "render",
    "whole_json",
]
