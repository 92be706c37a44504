"""Every error that instar raises, grouped by what the caller should do next.

    InstarError
    ├── UsageError                      change the call
    │   ├── InvalidSchemaError          a schema text or value that cannot be read; says where
    │   │   └── UnsupportedTypeError    a type that a table cannot hold
    │   ├── AmbiguousEvolutionError     a rename, or a drop and an add? only the caller knows
    │   ├── FormerNameError             a new column with the name of an old one: which is meant?
    │   ├── InvalidNameError            a table name or path that is not allowed
    │   ├── InvalidEventError           an OpenLineage event that cannot be understood; nothing of it is kept
    │   ├── DataMismatchError           data that does not fit the table; says column, row and why
    │   ├── MissingExtraError           something that has to be installed is not: says what
    │   ├── FileSystemMissingError      Spark cannot open the store's files: the package to add
    │   ├── WorkerVersionError          Spark's workers have another instar than the driver: install the same
    │   └── FormatTooNewError           written by a newer instar: upgrade
    ├── NotFoundError                   name something that exists
    │   ├── StoreNotFoundError
    │   ├── TableNotFoundError
    │   ├── StreamNotFoundError
    │   ├── EntityNotFoundError         a dataset, job, run or version that lineage does not know
    │   ├── SchemaNotFoundError
    │   ├── ColumnNotFoundError
    │   └── InputNotFoundError          no file to import
    ├── ConflictError                   reload and retry
    │   ├── SchemaMismatchError         compare_and_evolve_schema expected another schema
    │   ├── UpperMismatchError          an append expected another upper
    │   ├── LeaseExpiredError           a vacuum has deleted a reader's files: read again
    │   ├── PartsGoneError              a compaction's inputs were replaced meanwhile
    │   ├── TableExistsError
    │   ├── StreamExistsError
    │   ├── VersionConflictError        a version of a stream is known with another schema
    │   └── LeadershipLostError         another evolver leads now
    ├── IncompatibleSchemaError         against the evolution rules: make another change
    ├── FencedError                     open again at the latest schema
    │   ├── ReaderFencedError
    │   └── WriterFencedError
    ├── CommitOutcomeUnknownError       look before retrying
    ├── CorruptTableError               stop: stored bytes are not what was written
    │   └── AdoptedFileError            a file that others wrote is gone, or has been changed: put it back
    ├── NegativeCountError              a row was retracted more often than it was added: add it back
    ├── CountOverflowError              there are more copies of a row than can be shown: retract some
    ├── SkippingViolationError          a proof about a part was wrong: read everything, and report it
    └── StorageError                    the store did not do it
        ├── StorageDeniedError          it does not allow it
        ├── StorageUnsupportedError     it cannot do it: choose another service
        └── StorageTimeoutError         the store may or may not have done it

Each class has a stable `code`, typed fields, and builds its own message: what, why, what next.
`DISPOSITIONS` gives each class its process exit code and HTTP status.
"""

from instar.errors.base import InstarError
from instar.errors.conflict import (
    ConflictError,
    LeadershipLostError,
    LeaseExpiredError,
    PartsGoneError,
    SchemaMismatchError,
    StreamExistsError,
    TableExistsError,
    UpperMismatchError,
    VersionConflictError,
)
from instar.errors.dispositions import DISPOSITIONS, Disposition, disposition
from instar.errors.evolution import FencedError, IncompatibleSchemaError, ReaderFencedError, WriterFencedError
from instar.errors.integrity import (
    AdoptedFileError,
    CorruptTableError,
    CountOverflowError,
    NegativeCountError,
    SkippingViolationError,
)
from instar.errors.not_found import (
    ColumnNotFoundError,
    EntityNotFoundError,
    InputNotFoundError,
    NotFoundError,
    SchemaNotFoundError,
    StoreNotFoundError,
    StreamNotFoundError,
    TableNotFoundError,
)
from instar.errors.storage import (
    CommitOutcomeUnknownError,
    StorageDeniedError,
    StorageError,
    StorageTimeoutError,
    StorageUnsupportedError,
)
from instar.errors.usage import (
    AmbiguousEvolutionError,
    DataMismatchError,
    FileSystemMissingError,
    FormatTooNewError,
    FormerNameError,
    InvalidEventError,
    InvalidNameError,
    InvalidSchemaError,
    MissingExtraError,
    UnsupportedTypeError,
    UsageError,
    WorkerVersionError,
)

__all__ = [
    "DISPOSITIONS",
    "AdoptedFileError",
    "AmbiguousEvolutionError",
    "ColumnNotFoundError",
    "CommitOutcomeUnknownError",
    "ConflictError",
    "CorruptTableError",
    "CountOverflowError",
    "DataMismatchError",
    "Disposition",
    "EntityNotFoundError",
    "FencedError",
    "FileSystemMissingError",
    "FormatTooNewError",
    "FormerNameError",
    "IncompatibleSchemaError",
    "InputNotFoundError",
    "InstarError",
    "InvalidEventError",
    "InvalidNameError",
    "InvalidSchemaError",
    "LeadershipLostError",
    "LeaseExpiredError",
    "MissingExtraError",
    "NegativeCountError",
    "NotFoundError",
    "PartsGoneError",
    "ReaderFencedError",
    "SchemaMismatchError",
    "SchemaNotFoundError",
    "SkippingViolationError",
    "StorageDeniedError",
    "StorageError",
    "StorageTimeoutError",
    "StorageUnsupportedError",
    "StoreNotFoundError",
    "StreamExistsError",
    "StreamNotFoundError",
    "TableExistsError",
    "TableNotFoundError",
    "UnsupportedTypeError",
    "UpperMismatchError",
    "UsageError",
    "VersionConflictError",
    "WorkerVersionError",
    "WriterFencedError",
    "disposition",
]
