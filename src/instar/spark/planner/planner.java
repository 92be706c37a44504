/*
 * Tables and scans as Spark's planner knows them, compiled by what Spark compiles its queries with.
 *
 * Spark asks a scan dozens of questions, and most of them need no metadata: names, columns, sizes, whether two
 * scans are equal. These are answered here. What needs metadata is asked of Python: once when Spark hands over
 * filters, and once when it wants files. All of this lives on the driver. What goes to executors is Spark's own,
 * or what leaves retracted rows out (`positions.java`).
 *
 * The compiler knows no lambdas, and takes no notice of type parameters.
 */
package instar;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.BiFunction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.VariantExtraction;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.FileTable;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.internal.connector.SupportsRuntimeCatalystFiltering;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.Seq;

/** What Python makes things of Spark's with, in one session. */
public class Planner {
    static final Seq NOTHING = seq(new ArrayList());
    static final StructType NO_COLUMNS = new StructType();
    static final ObjectMapper JSON = new ObjectMapper();
    static final Option NONE = Option.empty();

    final org.apache.spark.sql.classic.SparkSession session;
    final scala.collection.immutable.Map options;
    final CaseInsensitiveStringMap optionMap;
    final BiFunction less;
    private final BiFunction told;

    /**
     * `options` say how files are read; `told` adds to a question what Python is told of the session and filters;
     * `less` makes readers that tell positions into ones that leave retracted rows out.
     */
    public Planner(
            org.apache.spark.sql.classic.SparkSession session, Map options, BiFunction told, BiFunction less) {
        this.session = session;
        this.less = less;
        this.options = org.apache.spark.api.python.PythonUtils.toScalaMap(options);
        this.optionMap = new CaseInsensitiveStringMap(options);
        this.told = told;
    }

    /**
     * Returns a table in one state; `identity` tells it from others, `python` chooses its parts, and `less` says that
     * rows of some parts are retracted, or that the places of rows are asked for.
     */
    public PlannedTable table(
            String name, String identity, String schema, BiFunction python, String number, boolean less) {
        return new PlannedTable(this, name, identity, (StructType) DataType.fromJson(schema), python, number, less);
    }

    /** Returns a frame over a table: all of its columns, or those that texts say, if there are any. */
    public Object frame(PlannedTable table, String[] texts) throws Exception {
        LogicalPlan plan = DataSourceV2Relation.create(table, NONE, NONE, CaseInsensitiveStringMap.empty(), NONE);
        List named = new ArrayList();
        for (int i = 0; i < texts.length; i++) named.add(session.sessionState().sqlParser().parseExpression(texts[i]));
        return org.apache.spark.sql.classic.Dataset.ofRows(
            session, named.isEmpty() ? plan : new Project(seq(named), plan));
    }

    /** Returns the number by which Python finds what is behind a table or a scan; null if it is none of ours. */
    public String numberOf(Object known) {
        if (known instanceof PlannedTable) return ((PlannedTable) known).number;
        return known instanceof PlannedScan ? ((PlannedScan) known).number() : null;
    }

    /** Returns parts that Python has chosen; `proved` says that no row of them has to be looked at. */
    public Choice choice(BiFunction python, String number, String bytes, String rows, int parts,
                         boolean proved, String digest) {
        return new Choice(python, number, Long.parseLong(bytes), Long.parseLong(rows), parts, proved, digest);
    }

    /** Says what does not work as it should: whether members keep their ids, and files arrive. */
    public String tryOut() throws Exception {
        StructType whole = (StructType) DataType.fromJson(
            "{\"type\":\"struct\",\"fields\":[{\"name\":\"f1\",\"nullable\":true,\"metadata\":"
            + "{\"parquet.field.id\":1},\"type\":{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":\"long\","
            + "\"nullable\":true,\"metadata\":{\"parquet.field.id\":2}}]}}]}");
        StructType bare = (StructType) DataType.fromJson(
            "{\"type\":\"struct\",\"fields\":[{\"name\":\"f1\",\"nullable\":true,\"metadata\":{},\"type\":"
            + "{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}}]}");
        if (!PlannedTable.narrowed(bare, whole).equals(whole)) return "members of structs lose their ids";
        byte[] files = "[\"file:/instar/one.parquet\",1,0,0,\"file:/instar/two.parquet\",2,1,0]".getBytes("UTF-8");
        byte[] told = ByteBuffer.allocate(4 + files.length).putInt(files.length).put(files).array();
        try {
            new PartReader(this, whole, whole, NOTHING, true).partitions(Choice.decoded(told), 2);
        } catch (IllegalStateException lost) {
            return lost.getMessage();
        }
        return null;
    }

    /** Asks a question, and tells Python of the session's settings, its time zone, and filters as they print. */
    String question(Map said, Seq filters) { return (String) told.apply(said, filters); }

    String question(String kind, Seq filters) {
        Map said = new HashMap();
        said.put("kind", kind);
        return question(said, filters);
    }

    static Seq seq(List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }
}

/**
 * A table in one state: parts that are read as they are, less rows that were retracted by position. Of a table of files,
 * Spark can tell which they are.
 *
 * It has the column `_metadata` that Spark has of files, but no scan of it: what reads that column is replaced by a
 * relation over files before Spark asks for a scan.
 */
class PlannedTable extends FileTable implements BiFunction, SupportsMetadataColumns {
    final Planner planner;
    final BiFunction python;
    final StructType schema;
    final String identity;
    final String number;
    /** Whether rows of some parts are retracted, or the places of rows asked for. */
    final boolean less;
    private final String name;
    private final Set known = new HashSet();
    private final Set apart = new HashSet();
    private volatile Choice whole;

    PlannedTable(Planner planner, String name, String identity, StructType schema, BiFunction python, String number,
                 boolean less) {
        super(planner.session, CaseInsensitiveStringMap.empty(), Planner.NOTHING, Option.apply(schema));
        this.planner = planner;
        this.name = name;
        this.identity = identity;
        this.schema = schema;
        this.python = python;
        this.number = number;
        this.less = less;
    }

    /** Puts the table into a plan: as a relation with these columns, or over files. */
    public Object apply(Object kind, Object of) {
        if (kind.equals("files")) return python.apply("{\"kind\":\"files\"}", null);
        return new DataSourceV2Relation(
            this, (Seq) of, Planner.NONE, Planner.NONE, CaseInsensitiveStringMap.empty(), Planner.NONE);
    }

    public MetadataColumn[] metadataColumns() { return new MetadataColumn[] {new FileColumn()}; }

    public PartitioningAwareFileIndex fileIndex() {
        return new PartFiles(planner, choose(Planner.NOTHING).files(planner));
    }

    /** Has no partitions: for those of files, Spark would have all files listed. */
    public Transform[] partitioning() { return new Transform[0]; }

    public Option inferSchema(Seq files) { return Option.apply(schema); }

    public String formatName() { return "instar"; }

    public Class fallbackFileFormat() { return ParquetFileFormat.class; }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        throw new UnsupportedOperationException(name + " is a snapshot: append to its table");
    }

    public String name() { return name; }

    public StructType schema() { return schema; }

    public Set capabilities() { return EnumSet.of(TableCapability.BATCH_READ); }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new PlannedScanBuilder(this); }

    public boolean equals(Object other) {
        return other instanceof PlannedTable
            && ((PlannedTable) other).identity.equals(identity) && ((PlannedTable) other).schema.equals(schema);
    }

    public int hashCode() { return identity.hashCode(); }

    public String toString() { return name; }

    /** Returns the parts that filters need; all of them, if there are none, are asked for once. */
    Choice choose(Seq filters) {
        if (!filters.isEmpty()) return (Choice) python.apply(planner.question("choose", filters), filters);
        if (whole == null) whole = (Choice) python.apply(planner.question("choose", filters), filters);
        return whole;
    }

    /** Returns which columns have bounds that tell parts apart, of these and of those that were asked for before. */
    synchronized Set tellsApart(StructType columns) {
        List asked = new ArrayList();
        for (int i = 0; i < columns.fields().length; i++) {
            if (known.add(columns.fields()[i].name())) asked.add(columns.fields()[i].name());
        }
        if (!asked.isEmpty()) {
            Map question = new HashMap();
            question.put("kind", "apart");
            question.put("columns", asked);
            String told = (String) python.apply(planner.question(question, Planner.NOTHING), null);
            apart.addAll(Arrays.asList((Object[]) told.split(" ")));
        }
        return apart;
    }

    /** Returns columns that Spark has pruned, with the ids and the rest that it forgets inside of structs. */
    static StructType narrowed(StructType wanted, StructType whole) {
        StructField[] found = new StructField[wanted.fields().length];
        for (int i = 0; i < found.length; i++) {
            StructField asked = wanted.fields()[i];
            StructField own = whole.apply(asked.name());
            if (!own.metadata().contains("parquet.field.id") && !PartReader.isPlace(own)) {
                throw new IllegalStateException("the column " + own.name() + " has no id");
            }
            found[i] = new StructField(
                own.name(), narrowed(asked.dataType(), own.dataType()), own.nullable(), own.metadata());
        }
        return new StructType(found);
    }

    private static DataType narrowed(DataType wanted, DataType whole) {
        if (wanted instanceof StructType && whole instanceof StructType) {
            return narrowed((StructType) wanted, (StructType) whole);
        }
        if (wanted instanceof ArrayType && whole instanceof ArrayType) {
            ArrayType own = (ArrayType) whole;
            return new ArrayType(narrowed(((ArrayType) wanted).elementType(), own.elementType()), own.containsNull());
        }
        if (wanted instanceof MapType && whole instanceof MapType) {
            MapType asked = (MapType) wanted;
            MapType own = (MapType) whole;
            return new MapType(narrowed(asked.keyType(), own.keyType()), narrowed(asked.valueType(), own.valueType()),
                own.valueContainsNull());
        }
        return whole;
    }
}

/** What Spark tells of files: where a row is from. */
class FileColumn implements MetadataColumn {
    private static final Attribute OWN = new ParquetFileFormat().createFileMetadataCol();

    public String name() { return OWN.name(); }

    public DataType dataType() { return OWN.dataType(); }

    public boolean isNullable() { return OWN.nullable(); }
}

/** Parts that metadata chose. Python holds which they are. */
class Choice {
    /** How many bytes Python may tell of files that are kept: those of about 20,000 files, or of fewer bitmaps. */
    static final int MOST_KEPT = 4 << 20;

    final String number;
    final long bytes;
    final long rows;
    final int parts;
    final boolean proved;
    final String digest;
    private final BiFunction python;
    private volatile FileStatusWithMetadata[] files;

    Choice(BiFunction python, String number, long bytes, long rows, int parts, boolean proved, String digest) {
        this.python = python;
        this.number = number;
        this.bytes = bytes;
        this.rows = rows;
        this.parts = parts;
        this.proved = proved;
        this.digest = digest;
    }

    /** Asks for something about these parts. */
    Object ask(String question, Object of) { return python.apply(question, of); }

    /** Returns the files, which are checked each time, and listed once if that is not very much. */
    FileStatusWithMetadata[] files(Planner planner) {
        FileStatusWithMetadata[] kept = files;
        Object told = ask(planner.question(kept == null ? "files" : "check", Planner.NOTHING), null);
        if (kept != null) return kept;
        FileStatusWithMetadata[] made = decoded((byte[]) told);
        if (((byte[]) told).length <= MOST_KEPT) files = made;
        return made;
    }

    /**
     * Reads files: the length of a list in JSON, the list, and bitmaps. In the list are by turns a path, a size, the
     * number of the part, and how many bytes of the bitmaps say which of its rows are retracted. If nobody wants to
     * know these, the number is null.
     */
    static FileStatusWithMetadata[] decoded(byte[] told) {
        int at = ByteBuffer.wrap(told).getInt();
        List items;
        try {
            items = (List) Planner.JSON.readValue(told, 4, at, List.class);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        at += 4;
        FileStatusWithMetadata[] made = new FileStatusWithMetadata[items.size() / 4];
        for (int i = 0; i < made.length; i++) {
            long size = ((Number) items.get(4 * i + 1)).longValue();
            FileStatus file = new FileStatus(size, false, 0, 0L, 0L, new Path((String) items.get(4 * i)));
            byte[] taken = Arrays.copyOfRange(told, at, at + ((Integer) items.get(4 * i + 3)).intValue());
            made[i] = new FileStatusWithMetadata(file, PartReader.said(items.get(4 * i + 2), taken));
            at += taken.length;
        }
        return made;
    }
}

/** What Spark's optimizer tells a scan before it is built: filters, columns, then aggregations or limits. */
class PlannedScanBuilder implements SupportsPushDownRequiredColumns /*OF BUILDERS*/ {
    private final PlannedTable table;
    private StructType columns;
    private Seq filters = Planner.NOTHING;
    private Choice choice;
    private boolean decided;
    private Aggregation asked;
    private Answer answer;

    PlannedScanBuilder(PlannedTable table) {
        this.table = table;
        this.columns = table.schema;
    }

    /** Takes note of filters, and returns what Spark has to apply to rows: all, unless all are proved. */
    public Seq pushFilters(Seq filters) {
        this.filters = filters;
        if (filters.isEmpty()) return filters;
        choice = table.choose(filters);
        decided = choice.proved;
        return decided ? Planner.NOTHING : filters;
    }

    /** Names no filters: what is left out was never in question. */
    public Predicate[] pushedFilters() { return new Predicate[0]; }

    public void pruneColumns(StructType wanted) { columns = PlannedTable.narrowed(wanted, table.schema); }

    public boolean supportCompletePushDown(Aggregation aggregation) { return pushAggregation(aggregation); }

    /** Takes an aggregation over, if metadata has the whole answer. Spark asks if it has no filter left. */
    public boolean pushAggregation(Aggregation aggregation) {
        if (asked != aggregation) answer = answered(aggregation);
        asked = aggregation;
        return answer != null;
    }

    private Answer answered(Aggregation aggregation) {
        String[] names = new String[aggregation.groupByExpressions().length];
        for (int i = 0; i < names.length; i++) {
            names[i] = column(aggregation.groupByExpressions()[i]);
            if (names[i] == null) return null;
        }
        AggregateFunc[] functions = aggregation.aggregateExpressions();
        List texts = new ArrayList();
        for (int i = 0; i < functions.length; i++) {
            String own = function(functions[i]);
            if (own == null) return null;
            texts.add(own);
        }
        Map question = new HashMap();
        question.put("kind", "answer");
        question.put("groups", Arrays.asList((Object[]) names));
        question.put("functions", texts);
        Object found = ask(question);
        return found == null ? null : new Answer(table.name(), (String) found);
    }

    private static String function(AggregateFunc function) {
        if (function instanceof CountStar) return "count";
        if (function instanceof Count && !((Count) function).isDistinct()) return of("count ", ((Count) function).column());
        if (function instanceof Min) return of("min ", ((Min) function).column());
        if (function instanceof Max) return of("max ", ((Max) function).column());
        return null;
    }

    private static String of(String kind, org.apache.spark.sql.connector.expressions.Expression of) {
        String name = column(of);
        return name == null ? null : kind + name;
    }

    private static String column(org.apache.spark.sql.connector.expressions.Expression expression) {
        if (!(expression instanceof NamedReference)) return null;
        String[] names = ((NamedReference) expression).fieldNames();
        return names.length == 1 ? names[0] : null;
    }

    /** Reads only as many parts as have so many rows; Spark cuts off the rest. */
    public boolean pushLimit(int rows) {
        Map question = new HashMap();
        question.put("kind", "limit");
        question.put("rows", String.valueOf(rows));
        return decide(ask(question));
    }

    /** Reads only parts that may have some of the first rows; Spark sorts, and cuts off the rest. */
    public boolean pushTopN(SortOrder[] orders, int rows) {
        String name = column(orders[0].expression());
        if (name == null) return false;
        Map question = new HashMap();
        question.put("kind", "top");
        question.put("column", name);
        question.put("ascending", String.valueOf(orders[0].direction().toString().equals("ASC")));
        question.put("nulls_first", String.valueOf(orders[0].nullOrdering().toString().equals("NULLS FIRST")));
        question.put("rows", String.valueOf(rows));
        return decide(ask(question));
    }

    public boolean isPartiallyPushed() { return true; }

    public Scan build() {
        if (answer != null) return answer;
        return new PlannedScan(table, columns, filters, choice, decided);
    }

    private boolean decide(Object found) {
        if (found == null) return false;
        choice = (Choice) found;
        decided = true;
        return true;
    }

    private Choice chosen() {
        if (choice == null) choice = table.choose(filters);
        return choice;
    }

    private Object ask(Map question) {
        return chosen().ask(table.planner.question(question, Planner.NOTHING), null);
    }
}

/**
 * The parts of a table that one place of a plan reads, and which columns.
 *
 * A join may prune more of them when it runs. That holds for the batch that Spark asks for next, in the same thread,
 * and for nothing else: several places of a plan may share one scan, and not all of them need have the join.
 */
class PlannedScan implements SupportsReportStatistics /*OF SCANS*/ {
    private static final int ROW_BYTES = 8;
    final PlannedTable table;
    final PartReader reader;
    private final StructType columns;
    private final Seq filters;
    private final boolean decided;
    private final ThreadLocal pending = new ThreadLocal();
    private Choice choice;
    private volatile Choice pruned;
    private volatile String told = "";
    private String identity;

    PlannedScan(PlannedTable table, StructType columns, Seq filters, Choice choice, boolean decided) {
        this.table = table;
        this.columns = columns;
        this.filters = filters;
        this.choice = choice;
        this.decided = decided;
        this.reader = new PartReader(table.planner, table.schema, columns, filters, table.less);
    }

    synchronized Choice chosen() {
        if (choice == null) choice = table.choose(filters);
        return choice;
    }

    /** By which Python finds what was chosen, and what a join left of it when it last ran. */
    String number() { return pruned == null ? chosen().number : pruned.number; }

    public StructType readSchema() { return columns; }

    public String description() {
        return "location: [" + table.name() + "], filters: [" + filters.mkString(", ") + "]" + told;
    }

    public Batch toBatch() {
        Choice left = (Choice) pending.get();
        pending.remove();
        return new PlannedBatch(this, left);
    }

    /** Returns the columns by which a join may prune: those that tell parts apart. */
    public NamedReference[] filterAttributes() {
        List names = new ArrayList();
        for (int i = 0; i < columns.fields().length; i++) {
            if (table.tellsApart(columns).contains(columns.fields()[i].name())) {
                names.add(Expressions.column(columns.fields()[i].name()));
            }
        }
        return (NamedReference[]) names.toArray(new NamedReference[names.size()]);
    }

    /** Says that rows have to be looked at, whatever the column. */
    public NamedReference[] fullyPushedFilterAttributes() { return new NamedReference[0]; }

    /** Prunes by what a join, or a subquery, has found out. */
    public void filter(Expression[] found) {
        Choice before = chosen();
        List conditions = new ArrayList();
        List texts = new ArrayList();
        for (int i = 0; i < found.length; i++) {
            if (!(found[i] instanceof InSubqueryExec)) {
                conditions.add(found[i]);
                texts.add(found[i].toString());
                continue;
            }
            InSubqueryExec of = (InSubqueryExec) found[i];
            if (!of.values().isDefined()) continue;
            JoinValues values = new JoinValues((Object[]) of.values().get());
            Expression condition = values.condition(of.child(), before.parts);
            if (condition == null) continue;
            conditions.add(condition);
            texts.add(of.child() + " IN (the " + String.format("%,d", new Object[] {Integer.valueOf(values.count)})
                + " values that a join has)");
        }
        if (conditions.isEmpty()) return;
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < texts.size(); i++) text.append(i == 0 ? "" : "\0").append(texts.get(i));
        Seq live = Planner.seq(conditions);
        Choice left = (Choice) before.ask(table.planner.question("prune " + text, live), live);
        pruned = left;
        told = ", joins left " + String.format("%,d of %,d",
            new Object[] {Integer.valueOf(left.parts), Integer.valueOf(before.parts)}) + " parts: ["
            + text.toString().replace("\0", ", ") + "]";
        pending.set(left);
    }

    public Scan.ColumnarSupportMode columnarSupportMode() {
        SQLConf conf = SQLConf.get();
        boolean batches = ParquetUtils.isBatchReadSupportedForSchema(conf, reader.read) && conf.wholeStageEnabled()
            && !WholeStageCodegenExec.isTooManyFields(conf, reader.read);
        return batches ? Scan.ColumnarSupportMode.SUPPORTED : Scan.ColumnarSupportMode.UNSUPPORTED;
    }

    /**
     * Says how large the parts are, for the columns that are read.
     *
     * A row has a few bytes of its own, as Spark counts them where it projects. Without them a narrow scan of a large
     * table would look half as large as the same one of plain files, and be broadcast.
     */
    public Statistics estimateStatistics() {
        Choice own = chosen();
        double share = (columns.defaultSize() + ROW_BYTES) / (double) (table.schema.defaultSize() + ROW_BYTES);
        return new PartStatistics((long) (own.bytes * share), own.rows);
    }

    public boolean equals(Object other) {
        return other instanceof PlannedScan && ((PlannedScan) other).table.equals(table)
            && ((PlannedScan) other).identity().equals(identity());
    }

    public int hashCode() { return identity().hashCode(); }

    public String toString() { return "scan of " + table.name(); }

    /** The columns, the filters without the numbers of a plan, and the parts if more than filters chose them. */
    synchronized String identity() {
        if (identity == null) {
            String[] texts = new String[filters.size()];
            for (int i = 0; i < texts.length; i++) {
                texts[i] = filters.apply(i).toString().replaceAll("(?<=\\w)#\\d+L?", "");
            }
            Arrays.sort(texts);
            identity = columns.json() + Arrays.toString((Object[]) texts) + (decided ? chosen().digest : "");
        }
        return identity;
    }
}

/** The values that the other side of a join has: one by one if they are few, otherwise the ranges they are in. */
class JoinValues {
    private static final int MOST = 10000;
    private static final int MOST_RANGES = 64;
    final int count;
    private final Object[] values;

    JoinValues(Object[] found) {
        // A null is equal to nothing, so that no row is wanted because of it.
        List kept = new ArrayList();
        for (int i = 0; i < found.length; i++) if (found[i] != null) kept.add(found[i]);
        this.values = kept.toArray();
        this.count = values.length;
    }

    /**
     * Returns a condition that is true for all of them; null if they are many, and no whole numbers.
     *
     * A part is skipped if it lies in one gap, so a few ranges more than there are parts are enough.
     */
    Expression condition(Expression column, int parts) {
        if (count <= MOST) {
            Set own = new HashSet(Arrays.asList(values));
            return new InSet(column, scala.jdk.javaapi.CollectionConverters.asScala(own).toSet());
        }
        for (int i = 0; i < count; i++) if (!isWhole(values[i])) return null;
        return among(column, sorted(), (int) Math.min(MOST_RANGES, 2L * parts + 2));
    }

    private static boolean isWhole(Object value) {
        return value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte;
    }

    private long[] sorted() {
        long[] numbers = new long[count];
        for (int i = 0; i < count; i++) numbers[i] = ((Number) values[i]).longValue();
        Arrays.sort(numbers);
        return numbers;
    }

    /** Returns a condition that is true for the ranges between the widest gaps of numbers in order. */
    private static Expression among(Expression column, long[] numbers, int ranges) {
        // A gap may be wider than a number can tell, unless the sign is taken for a digit.
        long[] gaps = new long[numbers.length - 1];
        for (int i = 0; i < gaps.length; i++) gaps[i] = (numbers[i + 1] - numbers[i]) ^ Long.MIN_VALUE;
        long[] widest = (long[]) gaps.clone();
        Arrays.sort(widest);
        long least = widest[widest.length - ranges + 1];
        int wider = 0;
        while (wider < ranges - 1 && widest[widest.length - 1 - wider] > least) wider++;
        int equal = ranges - 1 - wider;
        Expression all = null;
        int first = 0;
        for (int i = 0; i < numbers.length; i++) {
            boolean last = i == gaps.length;
            if (!last && (gaps[i] < least || (gaps[i] == least && equal-- <= 0))) continue;
            Expression own = new And(
                new GreaterThanOrEqual(column, literal(numbers[first], column)),
                new LessThanOrEqual(column, literal(numbers[i], column)));
            all = all == null ? own : new Or(all, own);
            first = i + 1;
        }
        return all;
    }

    private static Expression literal(long value, Expression column) {
        String kind = column.dataType().typeName();
        Object own = Long.valueOf(value);
        if (kind.equals("integer") || kind.equals("date")) own = Integer.valueOf((int) value);
        if (kind.equals("short")) own = Short.valueOf((short) value);
        if (kind.equals("byte")) own = Byte.valueOf((byte) value);
        return new Literal(own, column.dataType());
    }
}

/** What Spark decides joins by. */
class PartStatistics implements Statistics {
    private final long bytes;
    private final long rows;

    PartStatistics(long bytes, long rows) {
        this.bytes = bytes;
        this.rows = rows;
    }

    public OptionalLong sizeInBytes() { return OptionalLong.of(bytes); }

    public OptionalLong numRows() { return OptionalLong.of(rows); }
}

/** The parts of a scan, or those that a join left, which are listed only if Spark asks for them. */
class PlannedBatch implements Batch {
    private final PlannedScan scan;
    private final Choice pruned;

    PlannedBatch(PlannedScan scan, Choice pruned) {
        this.scan = scan;
        this.pruned = pruned;
    }

    public InputPartition[] planInputPartitions() {
        Choice own = pruned == null ? scan.chosen() : pruned;
        FileStatusWithMetadata[] files = own.files(scan.table.planner);
        try {
            return scan.reader.partitions(files, own.parts);
        } catch (IllegalStateException lost) {
            own.ask("{\"kind\":\"lost\"}", lost.getMessage());
            throw lost;
        }
    }

    public PartitionReaderFactory createReaderFactory() { return scan.reader.factory(); }

    /** What a join left is nobody else's. */
    public boolean equals(Object other) {
        if (this == other) return true;
        return other instanceof PlannedBatch && pruned == null && ((PlannedBatch) other).pruned == null
            && ((PlannedBatch) other).scan.equals(scan);
    }

    public int hashCode() { return scan.hashCode(); }
}

/** Spark's own scan of Parquet, over files that it is told, less rows that files say are retracted. */
class PartReader {
    /** By these names a file says which of its rows are retracted, and its number; executors know them too. */
    private static final String TAKEN = "instar.taken";
    private static final String NUMBER = "instar.number";
    private static final scala.collection.immutable.Map NOT_SAID =
        org.apache.spark.api.python.PythonUtils.toScalaMap(Collections.emptyMap());
    /** By this name Spark's reader tells where in its file a row is. */
    private static final String POSITION = "_tmp_metadata_row_index";
    /** What is read of files: columns that are in them, and the positions of rows if these are needed. */
    final StructType read;
    private final StructType stored;
    private final Planner planner;
    private final StructType whole;
    private final StructType columns;
    private final Seq filters;
    private final boolean less;
    private ParquetScan scan;

    PartReader(Planner planner, StructType whole, StructType columns, Seq filters, boolean less) {
        this.planner = planner;
        this.whole = whole;
        this.columns = columns;
        this.filters = filters;
        this.less = less;
        List own = new ArrayList();
        for (int i = 0; i < columns.fields().length; i++) if (!isPlace(columns.fields()[i])) own.add(columns.fields()[i]);
        this.stored = new StructType((StructField[]) own.toArray(new StructField[own.size()]));
        this.read = less ? stored.add(POSITION, DataTypes.LongType) : stored;
    }

    /** Whether a column tells where a row is, and is in no file: the number of a part, or a position in it. */
    static boolean isPlace(StructField column) { return column.name().startsWith("\u001f"); }

    /** Returns what a file says of itself: its number, and a bitmap of its retracted rows. */
    static scala.collection.immutable.Map said(Object number, byte[] taken) {
        if (number == null) return NOT_SAID;
        Map said = new HashMap();
        said.put(NUMBER, number);
        said.put(TAKEN, taken);
        return org.apache.spark.api.python.PythonUtils.toScalaMap(said);
    }

    /** Returns files as tasks read them: all, and no others, with what they say is retracted. */
    InputPartition[] partitions(FileStatusWithMetadata[] files, int count) {
        InputPartition[] made = files.length == 0
            ? new InputPartition[0] : over(new PartFiles(planner, files)).planInputPartitions();
        Set seen = new HashSet();
        for (int i = 0; i < made.length; i++) {
            PartitionedFile[] own = ((FilePartition) made[i]).files();
            for (int j = 0; j < own.length; j++) {
                seen.add(own[j].urlEncodedPath());
                if (less && !own[j].otherConstantMetadataColumnValues().contains(TAKEN)) {
                    throw new IllegalStateException("Spark does not pass on which rows are retracted");
                }
            }
        }
        if (seen.size() != count) throw new IllegalStateException("Spark holds " + seen.size() + " of " + count + " files");
        return made;
    }

    /** Returns what reads any of them. */
    synchronized PartitionReaderFactory factory() {
        if (scan == null) scan = over(new PartFiles(planner, new FileStatusWithMetadata[0]));
        PartitionReaderFactory own = scan.createReaderFactory();
        return less ? (PartitionReaderFactory) planner.less.apply(own, columns) : own;
    }

    /**
     * Whether all columns of a filter are read. Parquet takes a column that is not for one of nulls, and leaves
     * out all rows; and a filter that is proved for every row needs no column.
     */
    private boolean reads(Filter filter) {
        String[] paths = filter.references();
        for (int i = 0; i < paths.length; i++) {
            DataType type = stored;
            String[] steps = paths[i].split("\\.");
            for (int j = 0; j < steps.length; j++) {
                if (!(type instanceof StructType)) return false;
                Option at = ((StructType) type).getFieldIndex(steps[j]);
                if (!at.isDefined()) return false;
                type = ((StructType) type).fields()[((Integer) at.get()).intValue()].dataType();
            }
        }
        return true;
    }

    private synchronized ParquetScan over(PartFiles files) {
        List pushed = new ArrayList();
        for (int i = 0; i < filters.size(); i++) {
            Option own = DataSourceStrategy$.MODULE$.translateFilter((Expression) filters.apply(i), true);
            if (own.isDefined() && reads((Filter) own.get())) pushed.add(own.get());
        }
        scan = new ParquetScan(
            planner.session, files.hadoopConf(), files, whole, read, Planner.NO_COLUMNS,
            (Filter[]) pushed.toArray(new Filter[pushed.size()]), planner.optionMap, Planner.NONE,
            Planner.NOTHING, Planner.NOTHING, new VariantExtraction[0]);
        return scan;
    }
}

/** Files, for Spark's scan of Parquet. */
class PartFiles extends PartitioningAwareFileIndex {
    private final FileStatusWithMetadata[] files;

    PartFiles(Planner planner, FileStatusWithMetadata[] files) {
        super(planner.session, planner.options, Planner.NONE, NoopCache$.MODULE$);
        this.files = files;
    }

    public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
        List made = new ArrayList();
        made.add(new PartitionDirectory(InternalRow.empty(), Planner.seq(Arrays.asList((Object[]) files))));
        return Planner.seq(made);
    }

    public String[] inputFiles() {
        String[] paths = new String[files.length];
        for (int i = 0; i < paths.length; i++) paths[i] = files[i].getPath().toUri().toString();
        return paths;
    }

    public Seq rootPaths() { return Planner.NOTHING; }

    public PartitionSpec partitionSpec() { return new PartitionSpec(Planner.NO_COLUMNS, Planner.NOTHING); }

    public scala.collection.mutable.LinkedHashMap leafFiles() { return new scala.collection.mutable.LinkedHashMap(); }

    public scala.collection.immutable.Map leafDirToChildrenFiles() {
        return org.apache.spark.api.python.PythonUtils.toScalaMap(new HashMap());
    }

    public void refresh() {}
}

/** The answer to an aggregation, worked out from metadata: a scan that opens nothing. */
class Answer implements LocalScan {
    private final String name;
    private final String text;
    private final StructType columns;
    private final InternalRow[] rows;

    /** `text` is JSON: the schema, and rows of texts and nulls. */
    Answer(String name, String text) {
        this.name = name;
        this.text = text;
        Map found;
        try {
            found = (Map) Planner.JSON.readValue(text, Map.class);
        } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
        columns = (StructType) DataType.fromJson((String) found.get("schema"));
        List given = (List) found.get("rows");
        rows = new InternalRow[given.size()];
        for (int i = 0; i < rows.length; i++) {
            List cells = (List) given.get(i);
            Object[] values = new Object[cells.size()];
            for (int j = 0; j < values.length; j++) {
                values[j] = value((String) cells.get(j), columns.fields()[j].dataType());
            }
            rows[i] = new GenericInternalRow(values);
        }
    }

    /** Reads a value as Spark holds it: dates and times as the integers that they are. */
    private static Object value(String text, DataType type) {
        if (text == null) return null;
        String kind = type.typeName();
        if (kind.equals("long") || kind.equals("timestamp") || kind.equals("timestamp_ntz")) return Long.valueOf(text);
        if (kind.equals("integer") || kind.equals("date")) return Integer.valueOf(text);
        if (kind.equals("short")) return Short.valueOf(text);
        if (kind.equals("byte")) return Byte.valueOf(text);
        if (kind.equals("double")) return Double.valueOf(text);
        if (kind.equals("float")) return Float.valueOf(text);
        if (kind.equals("boolean")) return Boolean.valueOf(text);
        if (kind.equals("string")) return UTF8String.fromString(text);
        if (type instanceof org.apache.spark.sql.types.DecimalType) {
            org.apache.spark.sql.types.DecimalType decimal = (org.apache.spark.sql.types.DecimalType) type;
            return Decimal.apply(new java.math.BigDecimal(text), decimal.precision(), decimal.scale());
        }
        throw new IllegalStateException("no answers of type " + kind);
    }

    public InternalRow[] rows() { return rows; }

    public StructType readSchema() { return columns; }

    public String description() { return "from the metadata of " + name; }

    public boolean equals(Object other) {
        return other instanceof Answer && ((Answer) other).name.equals(name) && ((Answer) other).text.equals(text);
    }

    public int hashCode() { return text.hashCode(); }
}
