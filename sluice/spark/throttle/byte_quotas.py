"""The byte quota of a client as a Spark SQL column, by Kafka's precedence of users and client ids (KIP-55)."""

from collections.abc import Mapping
from itertools import chain

from pyspark.sql import Column
from pyspark.sql import functions as f

from sluice.quotas.entity import DEFAULT, Name, QuotaEntity

ByteQuotas = Mapping[str, Mapping[QuotaEntity, float]]

_ABSENT, _DEFAULT, _NAMED = "", "*", "="  # prefixes of the parts of a key; a name follows `_NAMED`
_SEPARATOR = "\0"


def byte_quota(quotas: ByteQuotas, api: Column, user: Column, client_id: Column) -> Column:
    bound = f.lit(None).cast("double")
    for name, by_entity in quotas.items():
        if by_entity:
            bound = f.when(api == name, _most_specific(by_entity, user, client_id)).otherwise(bound)
    return bound


def _most_specific(by_entity: Mapping[QuotaEntity, float], user: Column, client_id: Column) -> Column:
    items = chain.from_iterable((_key(entity), bound) for entity, bound in by_entity.items())
    bounds = f.create_map(*(f.lit(item) for item in items))
    users = [f.concat(f.lit(_NAMED), user), f.lit(_DEFAULT), f.lit(_ABSENT)]
    clients = [f.concat(f.lit(_NAMED), client_id), f.lit(_DEFAULT), f.lit(_ABSENT)]
    keys = [f.concat(one, f.lit(_SEPARATOR), other) for one in users for other in clients]
    return f.coalesce(*(f.try_element_at(bounds, key) for key in keys[:-1]))  # the last key is no entity


def _key(entity: QuotaEntity) -> str:
    return _SEPARATOR.join(map(_part, (entity.user, entity.client_id)))


def _part(name: Name) -> str:
    if name is None:
        return _ABSENT
    return _DEFAULT if name is DEFAULT else f"{_NAMED}{name}"
