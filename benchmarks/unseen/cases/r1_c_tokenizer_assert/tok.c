#include <assert.h>
#include <string.h>

void tokenize(const char *text, int *ids, int max_tokens) {
    int n = 0;
    const char *p = text;
    while (*p) {
        unsigned h = 5381;
        while (*p && *p != ' ')
            h = h * 33 + (unsigned char)*p++;
        assert(n < max_tokens && "text has too many tokens");
        ids[n++] = h % 1024;
        while (*p == ' ')
            p++;
    }
}
