package instar.standing;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.MetadataAttribute;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.FileTable;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** Gives each session of a context its rule. */
public class StandIns extends AbstractFunction1 {
    final String option;
    final BiFunction ask;
    private final Map queries = new WeakHashMap();
    private final Set known = Collections.newSetFromMap(new WeakHashMap());
    private long last = 0;

    /** The option that marks what stands for a table, and who answers what it is to be replaced by. */
    public StandIns(String option, BiFunction ask) {
        this.option = option;
        this.ask = ask;
    }

    /** Has a session, and those that share its extensions, replace them from now on. */
    public synchronized void install(SparkSession session) {
        if (known.add(session.extensions())) session.extensions().injectPreCBORule(this);
    }

    public Object apply(Object session) {
        return new StandInRule(this, (SparkSession) session);
    }

    /** Numbers the query that is being planned: the same for all its subqueries, and for no other query. */
    synchronized String query() {
        Option planned = QueryPlanningTracker.get();
        Object tracker = planned.isEmpty() ? null : planned.get();
        Object number = tracker == null ? null : queries.get(tracker);
        if (number == null) {
            number = Long.toString(++last);
            if (tracker != null) queries.put(tracker, number);
        }
        return (String) number;
    }
}

/** Replaces relations by what they stand for in this query. */
class StandInRule extends Rule {
    private final StandIns all;
    private final SparkSession session;

    StandInRule(StandIns all, SparkSession session) {
        this.all = all;
        this.session = session;
    }

    public TreeNode apply(TreeNode plan) {
        List found = new ArrayList();
        StringBuilder wanted = new StringBuilder();
        Answers answers = new Answers();
        find((LogicalPlan) plan, null, found, wanted, answers.plans);
        if (found.isEmpty() && answers.plans.isEmpty()) return plan;
        Seq told = found.isEmpty() ? null : (Seq) all.ask.apply(all.query(), wanted.toString());
        for (int i = 0; i < found.size(); i++) answers.plans.put(found.get(i), told.apply(i));
        return closed(replaced((LogicalPlan) plan, answers), answers.open);
    }

    /**
     * Collects relations, and a line for each: its number, and the columns that are read.
     * A table that the planner knows has no scan of `_metadata`: where that is read, it stands for its files.
     */
    private void find(LogicalPlan plan, Set read, List found, StringBuilder wanted, Map plans) {
        if (plan instanceof DataSourceV2Relation) {
            Object table = ((DataSourceV2Relation) plan).table();
            if (table instanceof FileTable && table instanceof BiFunction && readsMetadata(plan, read)) {
                plans.put(plan, ((BiFunction) table).apply("files", null));
            }
            return;
        }
        if (plan instanceof LogicalRelation) {
            String number = number((LogicalRelation) plan);
            if (number == null) return;
            found.add(plan);
            wanted.append(number);
            for (Iterator each = plan.output().iterator(); each.hasNext();) {
                Attribute column = (Attribute) each.next();
                if (read == null || read.contains(column.exprId())) wanted.append(' ').append(column.name());
            }
            wanted.append('\n');
            return;
        }
        // A scan reads what the first projection above it mentions, and the filters between them.
        Set below = null;
        if (plan instanceof Project) below = new HashSet();
        if (plan instanceof Filter && read != null) below = new HashSet(read);
        if (below != null) {
            for (Iterator each = plan.references().iterator(); each.hasNext();) {
                below.add(((Attribute) each.next()).exprId());
            }
        }
        for (Iterator each = plan.children().iterator(); each.hasNext();) {
            find((LogicalPlan) each.next(), below, found, wanted, plans);
        }
    }

    private static boolean readsMetadata(LogicalPlan leaf, Set read) {
        for (Iterator each = leaf.output().iterator(); each.hasNext();) {
            Attribute column = (Attribute) each.next();
            if (MetadataAttribute.isValid(column.metadata()) && (read == null || read.contains(column.exprId()))) return true;
        }
        return false;
    }

    private static boolean passes(LogicalPlan plan) {
        return plan instanceof Project || plan instanceof Filter;
    }

    private String number(LogicalRelation leaf) {
        if (!(leaf.relation() instanceof HadoopFsRelation)) return null;
        Option number = ((HadoopFsRelation) leaf.relation()).options().get(all.option);
        return number.isEmpty() ? null : (String) number.get();
    }

    /** Replaces leaves. */
    private LogicalPlan replaced(LogicalPlan plan, Answers answers) {
        Object answer = answers.plans.get(plan);
        if (answer instanceof HadoopFsRelation) return over((LogicalRelation) plan, (HadoopFsRelation) answer);
        if (answer instanceof BiFunction) return over(plan, (BiFunction) answer);
        if (answer != null) {
            LogicalPlan made = renamed((LogicalPlan) answer, plan);
            answers.open.add(made);
            return made;
        }
        boolean changed = false;
        List children = new ArrayList();
        for (Iterator each = plan.children().iterator(); each.hasNext();) {
            LogicalPlan child = (LogicalPlan) each.next();
            LogicalPlan made = replaced(child, answers);
            children.add(passes(plan) ? made : closed(made, answers.open));
            changed |= made != child;
        }
        if (!changed) return plan;
        LogicalPlan made = (LogicalPlan) plan.withNewChildren(seq(children));
        if (passes(plan) && answers.open.contains(children.get(0))) answers.open.add(made);
        return made;
    }

    private LogicalPlan closed(LogicalPlan plan, Set open) {
        if (!open.contains(plan)) return plan;
        // As a subquery it keeps the ids of its columns, by which the rest of the query knows them.
        Subquery kept = new Subquery(plan, false);
        return ((Subquery) session.sessionState().optimizer().execute(kept)).child();
    }

    /** Returns a leaf over other files. */
    private LogicalPlan over(LogicalRelation leaf, HadoopFsRelation relation) {
        Object[] arguments = new Object[leaf.productArity()];
        arguments[0] = relation;
        for (int i = 1; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
        return (LogicalPlan) leaf.makeCopy(arguments);
    }

    /** Returns a leaf over a table that the planner knows. */
    private static LogicalPlan over(LogicalPlan leaf, BiFunction table) {
        return (LogicalPlan) table.apply("relation", leaf.output());
    }

    /** Returns a plan whose columns are known as those of a leaf; it may lack the last ones, if nothing reads them. */
    private LogicalPlan renamed(LogicalPlan plan, LogicalPlan leaf) {
        List columns = new ArrayList();
        for (int i = 0; i < Math.min(leaf.output().size(), plan.output().size()); i++) {
            Attribute own = (Attribute) leaf.output().apply(i);
            columns.add(new Alias((Expression) plan.output().apply(i), own.name(), own.exprId(),
                own.qualifier(), Option.empty(), seq(new ArrayList())));
        }
        return new Project(seq(columns), plan);
    }

    private static Seq seq(List items) {
        return CollectionConverters.asScala(items).toSeq();
    }
}

/** What leaves are replaced by. */
class Answers {
    final Map plans = new IdentityHashMap();
    /** Plans in which conditions have not been pushed down yet. */
    final Set open = Collections.newSetFromMap(new IdentityHashMap());
}
