"""`Evolver`: brings the tables of every stream of a store to the latest version of their stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.errors import InstarError, StreamNotFoundError
from instar.stream import StreamHandle
from instar.stream.evolver import SHARE, PassReport, StreamEvolver
from instar.stream.handle import stream_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from instar.stream.evolution import EvolverState
    from instar.stream.judging import Judge
    from instar.table import Services

__all__ = ["Evolver"]


class Evolver:
    """Serves all streams of a store, or some. Several may run: one leads each stream at a time."""

    def __init__(
        self,
        services: Services,
        streams: list[str] | None = None,
        judge: Judge | None = None,
        share: float = SHARE,
    ) -> None:
        self._services = services
        self._streams = streams
        self._judge = judge
        self._share = share
        self._evolvers: dict[str, StreamEvolver] = {}

    def streams(self) -> list[StreamEvolver]:
        """Return one evolver for each stream; unless they were named, also for those that were dropped."""
        names = stream_names(self._services) if self._streams is None else self._streams
        for name in names:
            if name not in self._evolvers:
                handle = StreamHandle(self._services, name)
                self._evolvers[name] = StreamEvolver(handle, self._judge, share=self._share)
        return [self._evolvers[name] for name in names]

    def run_once(
        self, progress: Callable[[str, EvolverState], None] | None = None, *, stop: Event | None = None
    ) -> PassReport:
        """Do everything that is due now, for every stream, and report it.

        A stream that is not due, or that another evolver leads, costs two reads. A table that fails does not
        stop the others; a later call tries it again. A stream that cannot be read does not stop the others
        either; its error is raised at the end. If `stop` is set, it ends after the current step; the next
        evolver does the rest.
        """
        report = PassReport()
        errors: list[InstarError] = []
        for evolver in self.streams():
            if stop is not None and stop.is_set():
                break

            def tell(evolution: EvolverState, name: str = evolver.stream) -> None:
                if progress is not None:
                    progress(name, evolution)

            try:
                done, _ = evolver.run(tell, stop)
            except StreamNotFoundError as error:
                self._evolvers.pop(evolver.stream)  # there may be another one of its name by the next look
                if self._streams is not None:
                    errors.append(error)
            except InstarError as error:
                errors.append(error)
            else:
                report = report.plus(done)
        if errors:
            raise errors[0]
        return report

    def __repr__(self) -> str:
        named = "" if self._streams is None else ", ".join(map(repr, self._streams))
        return f"Evolver({named})"
