"""Configs of resources without other state, which exist while a config is set."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from sluice.config.invalid_value import invalid_value
from sluice.config.property_table import Property
from sluice.config.setting import Setting, Synonym
from sluice.config.value_types import Values, text_of
from sluice.protocol.errors import ErrorCode

from .resource import ApiError


class StoredConfigs(ABC):
    """See `ConfigStore`. Subclasses define the table and further validation."""

    rows: Mapping[str, Property]
    source: str
    no_name: str  # Kafka's message for describing the empty name
    unknown: tuple[ErrorCode, str]  # Kafka's error for an unknown key, and the start of its message

    def __init__(self) -> None:
        self._own: dict[str, Mapping[str, str]] = {}

    def names(self) -> Iterable[str]:
        return self._own

    def own(self, name: str) -> Mapping[str, str]:
        return self._own.get(name, {})

    def list_to_change(self, key: str) -> str | None:
        return None  # as in Kafka, whose schema does not declare the lists here

    def not_a_list(self, operation: str, key: str) -> str:
        return f"Can't {operation} to key {key} because its type is not LIST."

    def validate(self, name: str, own: Mapping[str, str]) -> ApiError | None:
        code, message = self.unknown
        for key in own:
            if key not in self.rows:
                return ApiError(code, message + key)
        for key, row in self.rows.items():
            # Kafka's schema does not declare these lists, so `validate_values` validates them.
            is_valid = key not in own or row.kind.type == "LIST"
            problem = None if is_valid else invalid_value(key, row.kind, own[key])
            if problem is not None:
                return ApiError(ErrorCode.INVALID_CONFIG, problem)
        return self.validate_values(own)

    @abstractmethod
    def validate_values(self, own: Mapping[str, str]) -> ApiError | None:
        """Return why these parsed values are not valid, or None."""

    def configure(self, name: str, own: Mapping[str, str]) -> None:
        if own:
            self._own[name] = own
        else:
            self._own.pop(name, None)

    def in_force(self, name: str) -> Values:
        own = self.own(name)
        texts = {key: own.get(key, self.default(row)) for key, row in self.rows.items()}
        return Values({key: self.rows[key].kind.parse(text) for key, text in texts.items()})

    def default(self, row: Property) -> str:
        assert row.default is not None
        return row.default

    def default_synonyms(self, row: Property) -> list[Synonym]:
        return []

    def describe(self, name: str) -> list[Setting] | ApiError:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, self.no_name)
        own, values = self.own(name), self.in_force(name)
        settings = []
        for key, row in self.rows.items():
            value = text_of(values.value(key))
            set_here = [Synonym(key, value or "", self.source)] if key in own else []
            settings.append(Setting(row, value, set_here + self.default_synonyms(row), ""))
        return settings
