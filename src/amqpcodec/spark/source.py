"""The data source ``amqp`` of Spark."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from .options import read_options, write_options
from .readers import AmqpReader
from .schemas import CORRUPT, table_schema


def register(spark: SparkSession) -> None:
    """Make ``format("amqp")`` known to a session, where Spark does not find it by itself."""
    try:
        spark.dataSource.register(AmqpSource)
    except AnalysisException as error:
        # Spark 4.0 takes no other source of a name that it has found, even if it is the same.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


class AmqpSource(DataSource):
    """Captures and streams of AMQP as tables; docs/spark.md has the options."""

    @classmethod
    def name(cls) -> str:
        """Return the name that stands in ``format``."""
        return "amqp"

    def schema(self) -> StructType:
        """Return the schema of the table, or of the columns that the option asks for."""
        options = read_options(self.options)
        found = table_schema(options["table"], dialect=options["dialect"], columns=options["columns"])
        for field in found:
            if field.name == CORRUPT:
                field.name = options["column_name_of_corrupt_record"]
        return StructType(found.fields)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader of the files that a rotating capture puts into a folder."""
        from .streaming import AmqpStreamReader

        return AmqpStreamReader(read_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of messages."""
        from .writer import AmqpWriter

        return AmqpWriter(write_options(self.options), schema, overwrite)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of those columns that a schema has."""
        return AmqpReader(read_options(self.options), schema)
