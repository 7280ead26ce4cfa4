/** The JVM's own use of SIGSEGV: null checks, deep recursion; and a crash of its own. */
import java.lang.reflect.Field;

public class Faults {
    private int value;

    private static int deep(int n) {
        return deep(n + 1) + 1;
    }

    public static void main(String[] words) throws Exception {
        int caught = 0;
        for (int i = 0; i < 20000; i++) {
            try {
                Faults nothing = i % 2 == 0 ? null : new Faults();
                caught += nothing.value;
            } catch (NullPointerException error) {
                caught++;
            }
        }
        System.out.println("null checks: " + caught);
        try {
            deep(0);
        } catch (StackOverflowError error) {
            System.out.println("deep recursion caught");
        }
        Thread thread = new Thread(() -> {
            try {
                deep(0);
            } catch (StackOverflowError error) {
                System.out.println("deep recursion caught in a thread");
            }
        });
        thread.start();
        thread.join();
        if (words.length > 0 && words[0].equals("crash")) {
            Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
            field.setAccessible(true);
            ((sun.misc.Unsafe) field.get(null)).putAddress(8, 1);
        }
        System.exit(5);
    }
}
