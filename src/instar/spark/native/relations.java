package instar.relations;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Makes what a session needs; `settings` are the names of those that Python is told, `options` how files are read. */
public class Sessions {
    public Relations of(SparkSession session, List settings, Map options) {
        return new Relations(session, settings, options);
    }
}

/**
 * Relations over files, made in one call each, and what Python has to know of a query to read its filters, as one text.
 */
class Relations implements BiFunction {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final SparkSession session;
    private final List settings;
    private final scala.collection.immutable.Map options;

    Relations(SparkSession session, List settings, Map options) {
        this.session = session;
        this.settings = settings;
        this.options = org.apache.spark.api.python.PythonUtils.toScalaMap(options);
    }

    /**
     * Returns a relation over files that Python lists. `partitions` are the columns that come with files, `schema` those
     * in them, both as JSON; `more` are options, names and values by turns; `format` is null for Spark's own.
     */
    public HadoopFsRelation relation(
            BiFunction python, int number, String label, String partitions, String schema, String more,
            ParquetFileFormat format) {
        PartIndex index = new PartIndex(this, python, number, label, (StructType) DataType.fromJson(partitions));
        scala.collection.immutable.Map all = options;
        String[] added = more.isEmpty() ? new String[0] : more.split("\0");
        for (int i = 0; i < added.length; i += 2) {
            all = (scala.collection.immutable.Map) all.updated(added[i], added[i + 1]);
        }
        return new HadoopFsRelation(index, index.partitionSchema(), (StructType) DataType.fromJson(schema),
            Option.empty(), format == null ? new ParquetFileFormat() : format, all, session);
    }

    /** Returns a frame over a relation: rows that pass a condition, if there is one, and columns as texts say. */
    public Object frame(HadoopFsRelation relation, Column condition, String[] texts) throws Exception {
        LogicalPlan plan = LogicalRelation$.MODULE$.apply(relation, false);
        if (condition != null) plan = new Filter(session.expression(condition), plan);
        List named = new ArrayList();
        for (int i = 0; i < texts.length; i++) named.add(session.sessionState().sqlParser().parseExpression(texts[i]));
        return Dataset.ofRows(session, new Project(seq(named), plan));
    }

    /** Adds the session's settings, the query's time zone, and filters as they print, to what else is said. */
    public Object apply(Object said, Object filters) {
        List texts = new ArrayList();
        List modes = new ArrayList();
        add((Seq) filters, texts, modes);
        return text((Map) said, texts, modes);
    }

    private String text(Map all, List texts, List modes) {
        SQLConf conf = session.sessionState().conf();
        Map found = new HashMap();
        for (int i = 0; i < settings.size(); i++) {
            String value = conf.getConfString((String) settings.get(i), null);
            if (value != null) found.put(settings.get(i), value);
        }
        all.put("settings", found);
        all.put("zone", SQLConf.get().sessionLocalTimeZone());
        all.put("filters", texts);
        all.put("modes", modes);
        try {
            return JSON.writeValueAsString(all);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void add(Seq filters, List texts, List modes) {
        for (int i = 0; i < filters.size(); i++) {
            Expression filter = (Expression) filters.apply(i);
            Map own = new HashMap();
            note(filter, 0, own);
            texts.add(filter.toJSON());
            modes.add(own);
        }
    }

    /** Notes what arithmetic does not print of itself: what it does on overflow, and its type; returns the next place. */
    private static int note(Expression expression, int place, Map noted) {
        if (expression instanceof BinaryArithmetic) {
            List own = new ArrayList();
            own.add(((BinaryArithmetic) expression).evalMode().toString());
            own.add(expression.dataType().json());
            noted.put(String.valueOf(place), own);
        }
        int next = place + 1;
        for (int i = 0; i < expression.children().size(); i++) {
            next = note((Expression) expression.children().apply(i), next, noted);
        }
        return next;
    }

    static Seq seq(List items) { return CollectionConverters.asScala(items).toSeq(); }
}

/**
 * Files that Python lists, for each query anew. Spark asks an index a dozen questions in each query, and most of them
 * are answered here.
 */
class PartIndex implements FileIndex {
    private final Relations relations;
    private final BiFunction python;
    private final int number;
    private final String label;
    private final StructType partitions;

    PartIndex(Relations relations, BiFunction python, int number, String label, StructType partitions) {
        this.relations = relations;
        this.python = python;
        this.number = number;
        this.label = label;
        this.partitions = partitions;
    }

    public Seq rootPaths() { return Relations.seq(Collections.singletonList(new Path(label))); }

    /** Asks Python for the files that a query with these filters reads. */
    public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
        Seq filters = (Seq) partitionFilters.appendedAll(dataFilters);
        return (Seq) python.apply(relations.apply(new HashMap(), filters), filters);
    }

    public String[] inputFiles() { return (String[]) python.apply("paths", null); }

    public long sizeInBytes() { return ((Number) python.apply("size", null)).longValue(); }

    public StructType partitionSchema() { return partitions; }

    public void refresh() {}

    public Option metadataOpsTimeNs() { return Option.empty(); }

    public String toString() { return label; }

    /** The number by which Python knows this index. */
    public int hashCode() { return number; }

    /** Spark may reuse a scan only over the same files. */
    public boolean equals(Object other) { return other instanceof PartIndex && ((PartIndex) other).number == number; }
}
