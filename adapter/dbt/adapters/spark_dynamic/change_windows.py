"""The windows of changes that models ask for while dbt compiles them."""

import threading

from spark_dynamic.changes.window import Window
from spark_dynamic.names import TableName
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.windows import Windows


class ChangeWindows:
    """What `changes()` in a dynamic table has stood for: known when its model is built.

    Compiling writes nothing, so a window is only noted; a refresh of the model makes it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._defined: dict[str, dict[TableName, Window]] = {}

    def define(self, model: str, relation: TableName, window: Window) -> TableName:
        """Note a window of a model; return its name."""
        name = window.name_for(relation)
        with self._lock:
            self._defined.setdefault(model, {})[name] = window
        return name

    def named(self, sql: str) -> Window | None:
        """Return the window whose name a text is."""
        with self._lock:
            known = (item for defined in self._defined.values() for item in defined.items())
            return next((window for name, window in known if name.sql == sql), None)

    def of(self, request: Request) -> Windows:
        """Return the windows that a model's text reads; it may have been compiled before."""
        with self._lock:
            defined = self._defined.get(request.model, {}).items()
            read = tuple(window for name, window in defined if name.sql in request.sql)
        return Windows(request, read)
