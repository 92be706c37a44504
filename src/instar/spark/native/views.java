package instar.views;

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
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** Gives each session of a context its rule. */
public class Views extends AbstractFunction1 {
    final String option;
    final BiFunction ask;
    private final Map queries = new WeakHashMap();
    private final Set known = Collections.newSetFromMap(new WeakHashMap());
    private long last = 0;

    /** The option that marks the relation of a view, and who answers what it is to be replaced by. */
    public Views(String option, BiFunction ask) {
        this.option = option;
        this.ask = ask;
    }

    /** Has a session, and those that share its extensions, pin views from now on. */
    public synchronized void install(SparkSession session) {
        if (known.add(session.extensions())) session.extensions().injectPreCBORule(this);
    }

    public Object apply(Object session) {
        return new ViewRule(this, (SparkSession) session);
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

/** Replaces the relations of views by what they stand for in this query. */
class ViewRule extends Rule {
    private final Views views;
    private final SparkSession session;

    ViewRule(Views views, SparkSession session) {
        this.views = views;
        this.session = session;
    }

    public TreeNode apply(TreeNode plan) {
        List found = new ArrayList();
        StringBuilder wanted = new StringBuilder();
        find((LogicalPlan) plan, null, found, wanted);
        if (found.isEmpty()) return plan;
        Seq answers = (Seq) views.ask.apply(views.query(), wanted.toString());
        Map byLeaf = new IdentityHashMap();
        for (int i = 0; i < found.size(); i++) byLeaf.put(found.get(i), answers.apply(i));
        Set open = Collections.newSetFromMap(new IdentityHashMap());
        return closed(replaced((LogicalPlan) plan, byLeaf, open), open);
    }

    /** Collects the relations of views, and a line for each: its number, and the columns that are read. */
    private void find(LogicalPlan plan, Set read, List found, StringBuilder wanted) {
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
            find((LogicalPlan) each.next(), below, found, wanted);
        }
    }

    private String number(LogicalRelation leaf) {
        if (!(leaf.relation() instanceof HadoopFsRelation)) return null;
        Option number = ((HadoopFsRelation) leaf.relation()).options().get(views.option);
        return number.isEmpty() ? null : (String) number.get();
    }

    /** Replaces leaves; `open` are plans in which conditions have not been pushed down yet. */
    private LogicalPlan replaced(LogicalPlan plan, Map answers, Set open) {
        Object answer = answers.get(plan);
        if (answer instanceof HadoopFsRelation) return over((LogicalRelation) plan, (HadoopFsRelation) answer);
        if (answer != null) {
            LogicalPlan made = renamed((LogicalPlan) answer, plan);
            open.add(made);
            return made;
        }
        boolean passes = plan instanceof Project || plan instanceof Filter;
        boolean changed = false;
        List children = new ArrayList();
        for (Iterator each = plan.children().iterator(); each.hasNext();) {
            LogicalPlan child = (LogicalPlan) each.next();
            LogicalPlan made = replaced(child, answers, open);
            children.add(passes ? made : closed(made, open));
            changed |= made != child;
        }
        if (!changed) return plan;
        LogicalPlan made = (LogicalPlan) plan.withNewChildren(seq(children));
        if (passes && open.contains(children.get(0))) open.add(made);
        return made;
    }

    private LogicalPlan closed(LogicalPlan plan, Set open) {
        if (!open.contains(plan)) return plan;
        return (LogicalPlan) session.sessionState().optimizer().execute(plan);
    }

    /** Returns a leaf over other files. */
    private LogicalPlan over(LogicalRelation leaf, HadoopFsRelation relation) {
        Object[] arguments = new Object[leaf.productArity()];
        arguments[0] = relation;
        for (int i = 1; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
        return (LogicalPlan) leaf.makeCopy(arguments);
    }

    /** Returns a plan whose columns are known as those of a leaf. */
    private LogicalPlan renamed(LogicalPlan plan, LogicalPlan leaf) {
        List columns = new ArrayList();
        for (int i = 0; i < leaf.output().size(); i++) {
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
