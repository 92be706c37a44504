package instar.catalogs;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableSummary;

/** What would take a call of Python for each table, or from Spark for each of its questions. */
public class Catalogs {
    // The compiler calls no static methods of interfaces.
    private final Method identifier;
    private final Method summary;

    public Catalogs() throws NoSuchMethodException {
        identifier = Identifier.class.getMethod("of", new Class[] {String[].class, String.class});
        summary = TableSummary.class.getMethod("of", new Class[] {Identifier.class, String.class});
    }

    /** Returns the tables of a namespace that have these names. */
    public Identifier[] identifiers(String[] namespace, String[] names) throws Exception {
        Identifier[] made = new Identifier[names.length];
        for (int i = 0; i < made.length; i++) {
            made[i] = (Identifier) identifier.invoke(null, new Object[] {namespace, names[i]});
        }
        return made;
    }

    /** Returns them with their kind, which is the same for all. */
    public TableSummary[] summaries(String[] namespace, String[] names, String kind) throws Exception {
        Identifier[] tables = identifiers(namespace, names);
        TableSummary[] made = new TableSummary[names.length];
        for (int i = 0; i < made.length; i++) {
            made[i] = (TableSummary) summary.invoke(null, new Object[] {tables[i], kind});
        }
        return made;
    }

    /** Returns a catalog that says its name itself, for which Spark asks again and again, and asks Python for all else. */
    public Object named(Object python, String name) {
        return Proxy.newProxyInstance(
            Identifier.class.getClassLoader(), python.getClass().getInterfaces(), new Named(python, name));
    }
}

class Named implements InvocationHandler {
    private final Object python;
    private final String name;

    Named(Object python, String name) {
        this.python = python;
        this.name = name;
    }

    public Object invoke(Object proxy, Method method, Object[] given) throws Throwable {
        if (method.getName().equals("name")) return name;
        if (method.getName().equals("equals")) return Boolean.valueOf(proxy == given[0]);
        try {
            return method.invoke(python, given);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }
}
