"""Tables without an engine: their logs, rollups, leases and housekeeping."""

from instar.table.housekeeping.vacuum import VacuumReport, check_clock, vacuum_store, vacuum_table
from instar.table.log.entries import Entry
from instar.table.log.leases import Lease, LeaseKeeper
from instar.table.log.manifest import load_parts
from instar.table.log.table_log import Committed, TableLog
from instar.table.log.tables import check_table_name, create_table, drop_table, find_tables, list_tables
from instar.table.marker import StoreMarker, check_consensus, find_marker, write_marker
from instar.table.opening import open_services
from instar.table.services import Services, wall_clock
from instar.table.write.append import PartWriter, begin_write, move_since

__all__ = [
    "Committed",
    "Entry",
    "Lease",
    "LeaseKeeper",
    "PartWriter",
    "Services",
    "StoreMarker",
    "TableLog",
    "VacuumReport",
    "begin_write",
    "check_clock",
    "check_consensus",
    "check_table_name",
    "create_table",
    "drop_table",
    "find_marker",
    "find_tables",
    "list_tables",
    "load_parts",
    "move_since",
    "open_services",
    "vacuum_store",
    "vacuum_table",
    "wall_clock",
    "write_marker",
]
