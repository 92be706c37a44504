package instar.positions;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.PrimitiveIterator;
import java.util.TreeMap;
import java.util.function.BiFunction;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.FileSourceOptions;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.RecordReaderIterator;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetRowIndexUtil;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.RoaringBitmap;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/**
 * What reads rows by where they are in their files. Executors need these classes too: they get them as a jar.
 *
 * The compiler knows no lambdas, and takes no notice of type parameters.
 */
public class Positions implements BiFunction {
    /** Returns Parquet as Spark reads it, but the position of a row is counted and not taken out of an iterator. */
    public ParquetFileFormat format() { return new PositionFormat(); }

    /**
     * Returns what reads some columns, less retracted rows, with what reads them and the positions of rows last.
     * Behind the columns of a file, the number of the part and the position of a row may be asked for.
     */
    public Object apply(Object factory, Object columns) {
        return new LessFactory((FilePartitionReaderFactory) factory, (StructType) columns);
    }

    /**
     * Returns where the rows of a frame are, of which the first column is the number of a part, and the second a position:
     * for each part its number, the length of a bitmap, and the bitmap.
     */
    public byte[] located(Dataset frame) throws IOException {
        JavaRDD rows = new JavaRDD(frame.queryExecution().toRdd(), ClassTag$.MODULE$.apply(InternalRow.class));
        java.util.Map all = new TreeMap();
        Iterator found = rows.mapPartitions(new Located()).collect().iterator();
        while (found.hasNext()) {
            DataInputStream rest = new DataInputStream(new ByteArrayInputStream((byte[]) found.next()));
            while (rest.available() > 0) {
                Integer part = Integer.valueOf(rest.readInt());
                rest.readInt();
                RoaringBitmap own = new RoaringBitmap();
                own.deserialize(rest);
                RoaringBitmap before = (RoaringBitmap) all.put(part, own);
                if (before != null) own.or(before);
            }
        }
        return Located.bytes(all);
    }
}

/** Puts the positions of rows together that a task finds. */
class Located implements FlatMapFunction {
    public Iterator call(Object found) throws IOException {
        Iterator rows = (Iterator) found;
        java.util.Map all = new TreeMap();
        int last = -1;
        RoaringBitmap own = null;
        while (rows.hasNext()) {
            InternalRow row = (InternalRow) rows.next();
            if (own == null || row.getInt(0) != last) {
                last = row.getInt(0);
                own = (RoaringBitmap) all.get(Integer.valueOf(last));
                if (own == null) all.put(Integer.valueOf(last), own = new RoaringBitmap());
            }
            own.add((int) row.getLong(1));
        }
        return Collections.singletonList(bytes(all)).iterator();
    }

    static byte[] bytes(java.util.Map all) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        Iterator parts = all.entrySet().iterator();
        while (parts.hasNext()) {
            java.util.Map.Entry part = (java.util.Map.Entry) parts.next();
            RoaringBitmap own = (RoaringBitmap) part.getValue();
            own.runOptimize();
            out.writeInt(((Integer) part.getKey()).intValue());
            out.writeInt(own.serializedSizeInBytes());
            own.serialize(out);
        }
        return bytes.toByteArray();
    }
}

class PositionFormat extends ParquetFileFormat {
    public Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType partitions,
            StructType required, Seq filters, Map options, Configuration hadoop) {
        return new Opening(new ParquetFileFormat().buildReaderWithPartitionValues(
            session, data, partitions, required, filters, options, hadoop));
    }
}

/** Opens a file, and has its reader count. */
class Opening extends AbstractFunction1 implements Serializable {
    private final Function1 open;

    Opening(Function1 open) { this.open = open; }

    public Object apply(Object file) {
        Object rows = open.apply(file);
        if (rows instanceof RecordReaderIterator) Counter.install(rows);
        return rows;
    }
}

/** Reads files less the rows that were retracted, which each file brings along, as it does its number. */
class LessFactory extends FilePartitionReaderFactory {
    private static final String TAKEN = "instar.taken";
    private static final String NUMBER = "instar.number";
    private static final String PART = "\u001fpart";
    private static final String ROW = "\u001frow";
    private final FilePartitionReaderFactory inner;
    private final StructType columns;

    LessFactory(FilePartitionReaderFactory inner, StructType columns) {
        this.inner = inner;
        this.columns = columns;
    }

    public FileSourceOptions options() { return inner.options(); }

    public boolean supportColumnarReads(InputPartition partition) { return inner.supportColumnarReads(partition); }

    public PartitionReader buildReader(PartitionedFile file) {
        return new LessRows(inner.buildReader(file), taken(file), columns, width(), number(file));
    }

    public PartitionReader buildColumnarReader(PartitionedFile file) {
        RoaringBitmap taken = taken(file);
        PartitionReader batches = inner.buildColumnarReader(file);
        return new LessBatches(batches, taken, columns, width(), number(file), Counter.install(batches));
    }

    /** Returns how many columns are in files. */
    private int width() {
        int width = 0;
        while (width < columns.fields().length && !isPart(columns, width) && !isRow(columns, width)) width++;
        return width;
    }

    static boolean isPart(StructType columns, int at) { return columns.fields()[at].name().equals(PART); }

    static boolean isRow(StructType columns, int at) { return columns.fields()[at].name().equals(ROW); }

    private static int number(PartitionedFile file) {
        return ((Integer) file.otherConstantMetadataColumnValues().apply(NUMBER)).intValue();
    }

    /** Returns the retracted rows of a file; null if it has none. It has to say so: nothing must come back unnoticed. */
    private static RoaringBitmap taken(PartitionedFile file) {
        Option told = file.otherConstantMetadataColumnValues().get(TAKEN);
        if (told.isEmpty()) throw new IllegalStateException("which rows are retracted is not said of " + file.filePath());
        byte[] data = (byte[]) told.get();
        if (data.length == 0) return null;
        RoaringBitmap taken = new RoaringBitmap();
        try {
            taken.deserialize(ByteBuffer.wrap(data));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return taken;
    }
}

/** Rows of a file, one by one, less those that were retracted. */
class LessRows implements PartitionReader {
    private final PartitionReader inner;
    private final RoaringBitmap taken;
    private final int width;
    private final UnsafeProjection narrow;
    private InternalRow row;

    LessRows(PartitionReader inner, RoaringBitmap taken, StructType columns, int width, int number) {
        this.inner = inner;
        this.taken = taken;
        this.width = width;
        List wanted = new ArrayList();
        for (int i = 0; i < columns.fields().length; i++) {
            Object own = LessFactory.isPart(columns, i)
                ? (Object) new Literal(Integer.valueOf(number), DataTypes.IntegerType)
                : new BoundReference(Math.min(i, width), columns.fields()[i].dataType(), true);
            wanted.add(own);
        }
        this.narrow = UnsafeProjection$.MODULE$.create(CollectionConverters.asScala(wanted).toSeq());
    }

    public boolean next() throws IOException {
        while (inner.next()) {
            InternalRow found = (InternalRow) inner.get();
            if (taken != null && taken.contains((int) found.getLong(width))) continue;
            row = narrow.apply(found);
            return true;
        }
        return false;
    }

    public Object get() { return row; }

    public void close() throws IOException { inner.close(); }
}

/** Batches of a file, less the rows that were retracted. Positions ascend: a file is read from its beginning. */
class LessBatches implements PartitionReader {
    private static final int[] EVERY = new int[4096];
    private final PartitionReader inner;
    private final RoaringBitmap taken;
    private final PeekableIntIterator next;
    private final StructType columns;
    private final int width;
    private final ConstantColumnVector part = new ConstantColumnVector(1, DataTypes.IntegerType);
    private final Counter counter;
    private int[] left = EVERY;
    private ColumnarBatch batch;

    static {
        for (int i = 0; i < EVERY.length; i++) EVERY[i] = i;
    }

    /** `taken` is null if no row is retracted, and `counter` if positions are only told row by row. */
    LessBatches(PartitionReader inner, RoaringBitmap taken, StructType columns, int width, int number,
                Counter counter) {
        this.inner = inner;
        this.taken = taken;
        this.next = taken == null ? null : taken.getIntIterator();
        this.columns = columns;
        this.width = width;
        this.counter = counter;
        part.setInt(number);
        if (counter != null) counter.tells = asksForRows();
    }

    private boolean asksForRows() {
        for (int i = width; i < columns.fields().length; i++) if (LessFactory.isRow(columns, i)) return true;
        return false;
    }

    public boolean next() throws IOException {
        while (inner.next()) {
            batch = less((ColumnarBatch) inner.get());
            if (batch.numRows() > 0) return true;
        }
        return false;
    }

    public Object get() { return batch; }

    public void close() throws IOException { inner.close(); }

    private ColumnarBatch less(ColumnarBatch whole) {
        int rows = whole.numRows();
        int count = taken == null ? rows : choose(whole.column(width), rows);
        ColumnVector[] made = new ColumnVector[columns.fields().length];
        for (int i = 0; i < made.length; i++) {
            ColumnVector own = whole.column(Math.min(i, width));
            made[i] = count == rows ? own : new LeftColumn(own, left);
            if (i >= width && LessFactory.isPart(columns, i)) made[i] = part;
        }
        return new ColumnarBatch(made, count);
    }

    /** Finds which rows of a batch are left, and returns how many; if that is all, nothing is said of which. */
    private int choose(ColumnVector positions, int rows) {
        if (left == EVERY || left.length < rows) left = new int[rows];
        long first = counter == null ? positions.getLong(0) : counter.first;
        boolean gaps = counter == null ? positions.getLong(rows - 1) - first != rows - 1 : counter.hasGaps();
        return gaps ? chooseSome(positions, rows) : chooseOf(first, rows);
    }

    /** Of rows that follow one another. */
    private int chooseOf(long first, int rows) {
        next.advanceIfNeeded((int) first);
        int count = 0;
        int from = 0;
        while (next.hasNext()) {
            long at = Integer.toUnsignedLong(next.peekNext()) - first;
            if (at >= rows) break;
            count = add(from, (int) at, count);
            from = (int) at + 1;
            next.next();
        }
        return from == 0 ? rows : add(from, rows, count);
    }

    private int add(int from, int to, int count) {
        if (to <= EVERY.length) {
            System.arraycopy(EVERY, from, left, count, to - from);
            return count + to - from;
        }
        for (int i = from; i < to; i++) left[count++] = i;
        return count;
    }

    /** Of rows with gaps between them, where pages of the file are not read. */
    private int chooseSome(ColumnVector positions, int rows) {
        int count = 0;
        for (int i = 0; i < rows; i++) if (!taken.contains((int) positions.getLong(i))) left[count++] = i;
        return count;
    }
}

/** Some rows of a column. */
class LeftColumn extends ColumnVector {
    private final ColumnVector whole;
    private final int[] left;
    private LeftColumn[] children = new LeftColumn[0];

    /** `left` may be longer than there are rows. */
    LeftColumn(ColumnVector whole, int[] left) {
        super(whole.dataType());
        this.whole = whole;
        this.left = left;
    }

    /** Does nothing: the column is its reader's. */
    public void close() {}

    public boolean hasNull() { return whole.hasNull(); }

    /** Counts too many, if some are in rows that are not left. */
    public int numNulls() { return whole.numNulls(); }

    public boolean isNullAt(int row) { return whole.isNullAt(left[row]); }

    public boolean getBoolean(int row) { return whole.getBoolean(left[row]); }

    public byte getByte(int row) { return whole.getByte(left[row]); }

    public short getShort(int row) { return whole.getShort(left[row]); }

    public int getInt(int row) { return whole.getInt(left[row]); }

    public long getLong(int row) { return whole.getLong(left[row]); }

    public float getFloat(int row) { return whole.getFloat(left[row]); }

    public double getDouble(int row) { return whole.getDouble(left[row]); }

    public ColumnarArray getArray(int row) { return whole.getArray(left[row]); }

    public ColumnarMap getMap(int row) { return whole.getMap(left[row]); }

    public Decimal getDecimal(int row, int precision, int scale) {
        return whole.getDecimal(left[row], precision, scale);
    }

    public UTF8String getUTF8String(int row) { return whole.getUTF8String(left[row]); }

    public byte[] getBinary(int row) { return whole.getBinary(left[row]); }

    /** Returns a member of a struct: the same rows of it. */
    public ColumnVector getChild(int member) {
        if (member >= children.length) children = (LeftColumn[]) Arrays.copyOf(children, member + 1);
        if (children[member] == null) children[member] = new LeftColumn(whole.getChild(member), left);
        return children[member];
    }
}

/** Counts positions in a file, row group by row group; of some rows only, if pages of the group are not read. */
class Counter extends ParquetRowIndexUtil.RowIndexGenerator {
    /** Whether each position is told, also of rows that follow one another. */
    boolean tells = true;
    /** The position of the first row of a batch, if its rows follow one another. */
    long first;
    private long next;
    private PrimitiveIterator.OfLong chosen;

    Counter(int column) { super(column); }

    /** Whether rows of a batch have gaps between them. */
    boolean hasGaps() { return chosen != null; }

    /**
     * Has the reader behind something count, and returns what does; null if the reader is built in another way, and
     * tells positions as it always does.
     */
    static Counter install(Object opened) {
        try {
            Field own = VectorizedParquetRecordReader.class.getDeclaredField("rowIndexGenerator");
            own.setAccessible(true);
            Object reader = readerOf(opened);
            Object before = reader == null ? null : own.get(reader);
            if (before == null) return null;
            Field column = ParquetRowIndexUtil.RowIndexGenerator.class.getDeclaredField("rowIndexColumnIdx");
            column.setAccessible(true);
            Counter counter = new Counter(column.getInt(before));
            own.set(reader, counter);
            return counter;
        } catch (ReflectiveOperationException error) {
            return null;
        } catch (RuntimeException error) { // of Java's, where it lets nobody look into its classes
            return null;
        }
    }

    private static Object readerOf(Object opened) throws ReflectiveOperationException {
        Field[] fields = opened.getClass().getDeclaredFields();
        for (int i = 0; i < fields.length; i++) {
            fields[i].setAccessible(true);
            Object value = fields[i].get(opened);
            if (value instanceof VectorizedParquetRecordReader) return value;
        }
        return null;
    }

    public void initFromPageReadStore(PageReadStore pages) {
        if (!pages.getRowIndexOffset().isPresent()) {
            throw new IllegalStateException("Parquet does not say where in the file a row group begins");
        }
        next = ((Long) pages.getRowIndexOffset().get()).longValue();
        Optional some = pages.getRowIndexes();
        chosen = some.isPresent() ? (PrimitiveIterator.OfLong) some.get() : null;
    }

    public void populateRowIndex(WritableColumnVector column, int rows) {
        if (chosen == null) {
            first = next;
            if (tells) for (int i = 0; i < rows; i++) column.putLong(i, next + i);
            next += rows;
        } else {
            for (int i = 0; i < rows; i++) column.putLong(i, next + chosen.nextLong());
        }
    }
}
