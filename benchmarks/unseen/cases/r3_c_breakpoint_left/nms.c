typedef struct { float x1, y1, x2, y2; } box;

static float area(const box *b) {
    float a = (b->x2 - b->x1) * (b->y2 - b->y1);
    if (a <= 0)
        __asm__ volatile("int3"); /* look at these boxes in the debugger */
    return a;
}

static float overlap(const box *a, const box *b) {
    float w = (a->x2 < b->x2 ? a->x2 : b->x2) - (a->x1 > b->x1 ? a->x1 : b->x1);
    float h = (a->y2 < b->y2 ? a->y2 : b->y2) - (a->y1 > b->y1 ? a->y1 : b->y1);
    float inter = w > 0 && h > 0 ? w * h : 0;
    return inter / (area(a) + area(b) - inter);
}

int suppress(const box *boxes, int n, float threshold, int *keep) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        int ok = 1;
        for (int j = 0; j < kept && ok; j++)
            ok = overlap(&boxes[i], &boxes[keep[j]]) < threshold;
        if (ok)
            keep[kept++] = i;
    }
    return kept;
}
