package instar.filters;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/** Makes what tells Python of the queries of a session; `settings` are the names of those that count. */
public class Tellers {
    public Teller of(SparkSession session, List settings) { return new Teller(session, settings); }
}

/** Tells what Python has to know of a query to read its filters, as one text: it would take a call for each fact. */
class Teller implements BiFunction {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final SparkSession session;
    private final List settings;

    Teller(SparkSession session, List settings) {
        this.session = session;
        this.settings = settings;
    }

    /** Adds the session's settings, the query's time zone, and filters as they print, to what else is said. */
    public Object apply(Object said, Object filters) {
        List texts = new ArrayList();
        List modes = new ArrayList();
        add((Seq) filters, texts, modes);
        return text((Map) said, texts, modes);
    }

    /** Tells the same of two sequences of filters, one after the other. */
    public String of(Seq first, Seq second) {
        List texts = new ArrayList();
        List modes = new ArrayList();
        add(first, texts, modes);
        add(second, texts, modes);
        return text(new HashMap(), texts, modes);
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
}
