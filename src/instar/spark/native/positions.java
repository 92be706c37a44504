package instar.positions;

import java.io.Serializable;
import java.lang.reflect.Field;
import java.util.Optional;
import java.util.PrimitiveIterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.RecordReaderIterator;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetRowIndexUtil;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Parquet as Spark reads it, but the position of a row is counted and not taken out of an iterator of objects.
 * Executors need these classes too: they get them as a jar.
 */
public class PositionFormat extends ParquetFileFormat {
    public Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType partitions,
            StructType required, Seq filters, Map options, Configuration hadoop) {
        return new Opening(new ParquetFileFormat().buildReaderWithPartitionValues(
            session, data, partitions, required, filters, options, hadoop));
    }
}

/** Opens a file, and has its reader count. A reader that is built in another way tells positions as it always does. */
class Opening extends AbstractFunction1 implements Serializable {
    private final Function1 open;

    Opening(Function1 open) { this.open = open; }

    public Object apply(Object file) {
        Object rows = open.apply(file);
        try {
            if (rows instanceof RecordReaderIterator) count(field(RecordReaderIterator.class, "rowReader").get(rows));
        } catch (ReflectiveOperationException error) {
            return rows;
        } catch (RuntimeException error) { // of Java's, where it lets nobody look into its classes
            return rows;
        }
        return rows;
    }

    private static void count(Object reader) throws ReflectiveOperationException {
        if (!(reader instanceof VectorizedParquetRecordReader)) return;
        Field own = field(VectorizedParquetRecordReader.class, "rowIndexGenerator");
        Object before = own.get(reader);
        if (before == null) return;
        int column = field(ParquetRowIndexUtil.RowIndexGenerator.class, "rowIndexColumnIdx").getInt(before);
        own.set(reader, new Positions(column));
    }

    private static Field field(Class of, String name) throws NoSuchFieldException {
        Field found = of.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }
}

/** Tells positions in a file, row group by row group; of some rows only, if pages of the group are not read. */
class Positions extends ParquetRowIndexUtil.RowIndexGenerator {
    private long next;
    private PrimitiveIterator.OfLong chosen;

    Positions(int column) { super(column); }

    public void initFromPageReadStore(PageReadStore pages) {
        next = ((Long) pages.getRowIndexOffset().orElse(Long.valueOf(0L))).longValue();
        Optional some = pages.getRowIndexes();
        chosen = some.isPresent() ? (PrimitiveIterator.OfLong) some.get() : null;
    }

    public void populateRowIndex(WritableColumnVector column, int rows) {
        if (chosen == null) {
            for (int i = 0; i < rows; i++) column.putLong(i, next + i);
            next += rows;
        } else {
            for (int i = 0; i < rows; i++) column.putLong(i, next + chosen.nextLong());
        }
    }
}
