"""One request for embeddings: what is refused, and what is answered."""

from dataclasses import dataclass
from typing import Any

from bot.emulators.voyage.state import MODELS, Config, Json, Model
from bot.emulators.voyage.vectors import encoded, quantized, vector

_KNOWN = frozenset(
    {"input", "model", "input_type", "truncation", "output_dimension", "output_dtype", "encoding_format"}
)
_MOST_TEXTS = 1_000
_DTYPES = ("float", "int8")


class RefusedError(Exception):
    """An error answer: `{"detail": …}` with a status."""

    def __init__(self, detail: str, status: int = 400, headers: dict[str, str] | None = None) -> None:
        self.detail = detail
        self.status = status
        self.headers = headers or {}
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class Order:
    """An accepted request."""

    model: Model
    texts: tuple[str, ...]
    dimension: int
    dtype: str
    base64: bool
    tokens: int


def accept(body: Any, config: Config) -> Order:
    """Raises Refused for the first thing that is wrong."""
    if not isinstance(body, dict):
        raise RefusedError("Request body is not a JSON object", 422)
    for key in body:
        if key not in _KNOWN:
            raise RefusedError(f"Argument '{key}' is not supported by our API.")
    model = MODELS.get(str(body.get("model")))
    if model is None:
        raise RefusedError(f"Model {body.get('model')} is not supported. Supported models are {sorted(MODELS)}.")
    dimension, dtype = _shape(body, model)
    texts = _texts(body.get("input"))
    counts = [config.tokens(t) for t in texts]
    truncation = body.get("truncation", True)
    if not isinstance(truncation, bool):
        raise RefusedError("truncation must be a boolean")
    if truncation:
        counts = [min(c, model.context) for c in counts]
    elif max(counts) > model.context:
        raise RefusedError(f"A text exceeds the model's maximum context length of {model.context} tokens.")
    if sum(counts) > model.batch_tokens:
        raise RefusedError(
            f"Request to model '{model.name}' failed. The max allowed tokens per submitted batch is "
            f"{model.batch_tokens}. Your batch has {sum(counts)} tokens after truncation. Please lower the number of "
            "tokens in the batch."
        )
    return Order(model, texts, dimension, dtype, body.get("encoding_format") == "base64", sum(counts))


def _shape(body: Json, model: Model) -> tuple[int, str]:
    if body.get("input_type") not in (None, "query", "document"):
        raise RefusedError("input_type must be one of null, 'query', 'document'")
    asked = {name: body[name] for name in ("output_dimension", "output_dtype") if body.get(name) is not None}
    dimension = asked.get("output_dimension", model.dimensions[0])
    if not isinstance(dimension, int) or dimension not in model.dimensions:
        raise RefusedError(f"output_dimension must be one of {sorted(model.dimensions)}")
    dtype = asked.get("output_dtype", "float")
    if dtype not in _DTYPES:
        raise RefusedError(f"output_dtype must be one of {', '.join(_DTYPES)}")
    if body.get("encoding_format") not in (None, "base64"):
        raise RefusedError("encoding_format must be null or 'base64'")
    return dimension, dtype


def _texts(given: Any) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise RefusedError("input must be a string or a non-empty list of strings")
    if len(texts) > _MOST_TEXTS:
        raise RefusedError(f"The batch size limit is {_MOST_TEXTS}. Your batch size is {len(texts)}.")
    for text in texts:
        if not isinstance(text, str) or not text:
            raise RefusedError("Input cannot contain empty strings or empty lists")
    return tuple(texts)


def answer(order: Order) -> Json:
    """The vectors, in order, with what is billed."""
    data = []
    for index, text in enumerate(order.texts):
        plain = vector(text, order.dimension)
        values: list[float] | list[int] = quantized(plain) if order.dtype == "int8" else plain
        shown = encoded(values, order.dtype) if order.base64 else values
        data.append({"object": "embedding", "embedding": shown, "index": index})
    return {"object": "list", "data": data, "model": order.model.name, "usage": {"total_tokens": order.tokens}}
