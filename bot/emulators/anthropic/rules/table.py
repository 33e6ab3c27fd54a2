"""The rules of a request, checked top to bottom; the first that fails answers."""

from collections.abc import Callable
from dataclasses import dataclass

from bot.emulators.anthropic import binding
from bot.emulators.anthropic.rules import caching, conversation, parameters, shape
from bot.emulators.anthropic.wire import Draft


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: the number in the specification, what it demands, the check that raises."""

    number: str
    demand: str
    check: Callable[[Draft], None]


RULES: tuple[Rule, ...] = (
    Rule("V1", "model, max_tokens and messages are present", shape.required_fields),
    Rule("V4", "no temperature, top_p, top_k", shape.no_sampling),
    Rule("K1", "no unknown keys", shape.known_keys),
    Rule("K2", "every field has its type, and objects no unknown keys (effort is part of V5)", shape.containers),
    Rule("K3", "the model is known (404)", shape.known_model),
    Rule("V2", "max_tokens is between 0 and the model's cap", parameters.max_tokens),
    Rule("V3", "max_tokens 0 stands alone", parameters.prewarm),
    Rule("K8", "no stream in a batch", parameters.plain_batch),
    Rule("V26", "block_binding needs its beta header", parameters.binding_controls),
    Rule("V5", "the thinking type suits model and effort", parameters.thinking),
    Rule("K7", "fast mode only where it is sold", parameters.speed),
    Rule("V6", "no forced tool use on Opus and Sonnet", parameters.forced_tools),
    Rule("V7", "tools are well formed, named once, and there when one is chosen", parameters.tools),
    Rule("K4", "schemas stay within the supported subset", parameters.schemas),
    Rule("K5", "messages and blocks have known shapes", shape.messages_shape),
    Rule("V8", "the first message is the user's, roles are known", conversation.roles),
    Rule("K6", "blocks are said by the right role", conversation.block_roles),
    Rule("V10", "system messages stand where they may", conversation.system_turns),
    Rule("V11", "the conversation does not end with the assistant", conversation.no_prefill),
    Rule("V12", "no empty text", conversation.no_empty_text),
    Rule("V13", "every tool_use is answered at once", conversation.tools_answered),
    Rule("V14", "every tool_result was asked for", conversation.results_asked),
    Rule("V15", "results come first, ids are unique", conversation.results_first),
    Rule("V16", "no documents by the assistant, no citations by the user", conversation.documents_and_citations),
    Rule("V22", "markers are ephemeral, 5m or 1h", caching.marker_shape),
    Rule("V19", "markers sit on whole, visible blocks", caching.marker_places),
    Rule("V20", "the automatic marker agrees with an explicit one", caching.automatic_agrees),
    Rule("V17", "at most four breakpoints, the automatic one counted (V21)", caching.marker_count),
    Rule("V18", "1h before 5m", caching.marker_order),
    Rule("V23", "signatures are genuine", binding.signatures),
    Rule("V24", "nothing before a thinking block changed", binding.prefixes),
    Rule("V25", "the latest assistant turn kept its thinking", binding.latest_intact),
    Rule("V27", "the input fits the window", caching.window),
)


def validate(draft: Draft) -> None:
    """Raises the refusal of the first rule that fails; V9 (same-role turns merge) is how turns are built."""
    for rule in RULES:
        rule.check(draft)
