package instar.taken;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.util.collection.BitSet;
import org.roaringbitmap.IntIterator;
import org.roaringbitmap.RoaringBitmap;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What it takes on the driver to leave out rows by position, all in one call; executors know nothing of it. */
public class Taken {
    /**
     * Returns a condition that is true for rows that are left. `taken` has bitmaps of rows, each after the bit
     * at which its file begins and its own length in bytes; `at` is where the bit of a row is.
     *
     * The set is in a reference, so that Spark compares plans without looking at all bits.
     */
    public Column left(int size, byte[] taken, String at) throws IOException {
        BitSet bits = new BitSet(size);
        ByteBuffer rest = ByteBuffer.wrap(taken);
        while (rest.hasRemaining()) {
            int begin = rest.getInt();
            byte[] own = new byte[rest.getInt()];
            rest.get(own);
            RoaringBitmap rows = new RoaringBitmap();
            rows.deserialize(ByteBuffer.wrap(own));
            for (IntIterator each = rows.getIntIterator(); each.hasNext();) bits.set(begin + each.next());
        }
        Expression reference = new Literal(new AtomicReference(bits), new ObjectType(AtomicReference.class));
        Expression set = call(reference, new ObjectType(BitSet.class), Collections.EMPTY_LIST);
        Expression bit = new KnownNotNull(ExpressionUtils.expression(org.apache.spark.sql.functions.expr(at)));
        return ExpressionUtils.column(new Not(call(set, DataTypes.BooleanType, Collections.singletonList(bit))));
    }

    /** Returns the call of `get`, which never returns null. */
    private static Expression call(Expression target, DataType type, List arguments) {
        return new Invoke(target, "get", type, seq(arguments), seq(Collections.EMPTY_LIST), true, false, true);
    }

    /**
     * Returns a directory for each file. Its partition columns have the file's numbers, which are eight bytes
     * each, and then values that all files share; `metadata` goes with the first file.
     */
    public Seq list(FileStatus[] files, byte[] numbers, Object[] shared, Map none, Map metadata) {
        ByteBuffer rest = ByteBuffer.wrap(numbers);
        int width = numbers.length / 8 / files.length;
        List made = new ArrayList();
        for (int i = 0; i < files.length; i++) {
            Object[] values = new Object[width + shared.length];
            for (int j = 0; j < width; j++) values[j] = Long.valueOf(rest.getLong());
            System.arraycopy(shared, 0, values, width, shared.length);
            FileStatusWithMetadata file = new FileStatusWithMetadata(files[i], i == 0 ? metadata : none);
            made.add(new PartitionDirectory(new GenericInternalRow(values), seq(Collections.singletonList(file))));
        }
        return seq(made);
    }

    private static Seq seq(List items) {
        return CollectionConverters.asScala(items).toSeq();
    }
}
