"""Transactions that the coordinator aborted at their timeout, producers that were fenced, and open transactions."""

from collections.abc import Iterator

from sluice.journal_events import Request, TransactionState
from sluice.protocol.errors import ErrorCode, name_of
from sluice.trace.model import Severity

from .history import Found, History, client_of, duration, grouped, number_value, seqs

_ABORTS = frozenset({"PrepareAbort", "PrepareEpochFence"})
FENCED_CODES = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)


def transactions(history: History) -> Iterator[Found]:
    for states in grouped(history.of(TransactionState), lambda one: one.transactional_id).values():
        began: TransactionState | None = None
        for state in states:
            if state.after == "Ongoing":
                began = state
            elif state.after in _ABORTS and began is not None:
                ends = _ends(history, began, state)
                yield _aborted(history, began, state, ends[-1]) if ends else _timed_out(history, began, state)
                began = None
            else:
                began = None
        if began is not None:
            yield _left_open(history, began)
    yield from _fenced(history)


def _ends(history: History, began: TransactionState, ended: TransactionState) -> list[Request]:
    """Return the requests that ended a transaction, or initialized its id again, which aborts it."""
    return [
        each
        for each in history.apis("EndTxn", "InitProducerId")
        if each.transactional_id == began.transactional_id and began.at_ns <= each.received_ns <= ended.at_ns
    ]


def _aborted(history: History, began: TransactionState, ended: TransactionState, request: Request) -> Found:
    name, client = began.transactional_id, client_of(request)
    title = f"Transaction {name} was aborted by client {client}"
    text = (
        f"{request.api} at {history.when(request.received_ns)}, {duration(ended.at_ns - began.at_ns)} after its first "
    )
    text += "partition was added. Readers with isolation.level=read_committed do not get its records."
    seqs_shown = [request.seq, began.seq, ended.seq]
    severity: Severity = "info" if request.api == "EndTxn" and not history.reads_committed else "warning"
    return Found("transaction-aborted", severity, title, text, request.received_ns, seqs_shown, [name, client])


def _timed_out(history: History, began: TransactionState, ended: TransactionState) -> Found:
    name = began.transactional_id
    inits = [one for one in history.apis("InitProducerId") if one.transactional_id == name]
    timeout_ms = number_value(inits[-1].sent, "transaction_timeout_ms") if inits else -1
    setting = f" transaction.timeout.ms is {timeout_ms}." if timeout_ms >= 0 else ""
    title = f"Transaction {name} timed out and was aborted"
    text = (
        f"The coordinator aborted it at {history.when(ended.at_ns)}, {duration(ended.at_ns - began.at_ns)} after its "
    )
    text += f"first partition was added.{setting} The producer sent no EndTxn meanwhile."
    return Found("transaction-timed-out", "error", title, text, ended.at_ns, [began.seq, ended.seq], [name])


def _left_open(history: History, began: TransactionState) -> Found:
    name = began.transactional_id
    title = f"Transaction {name} is open at the end"
    text = (
        f"It is ongoing since {history.when(began.at_ns)}. Readers with isolation.level=read_committed do not get its "
    )
    text += "records, or later ones of its partitions, until it ends."
    return Found("transaction-open", "warning", title, text, began.at_ns, [began.seq], [name])


def _fenced(history: History) -> Iterator[Found]:
    failed = [one for one in history.failed if not one.rule_id and not FENCED_CODES.isdisjoint(one.error_codes)]
    for (client, transactional_id), alike in grouped(
        failed, lambda one: (client_of(one), one.transactional_id)
    ).items():
        first = alike[0]
        code = name_of(next(code for code in first.error_codes if code in FENCED_CODES))
        of_id = f" of transactional id {transactional_id}" if transactional_id else ""
        title = f"Producer {client}{of_id} was fenced"
        text = f"{first.api} at {history.when(first.received_ns)} failed with {code}.{_successor(history, first)}"
        names = [client, *filter(None, (transactional_id,))]
        yield Found("producer-fenced", "error", title, text, first.received_ns, seqs(alike), names)


def _successor(history: History, fenced: Request) -> str:
    inits = [
        one
        for one in history.apis("InitProducerId")
        if one.transactional_id == fenced.transactional_id != "" and one.received_ns <= fenced.received_ns
    ]
    if not inits:
        return ""
    last = inits[-1]
    return f" Client {client_of(last)} initialized the transactional id at {history.when(last.received_ns)}."
