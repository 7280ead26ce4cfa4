/* dynamic range compressor, second version */
int compress2(const float *in, long n, float *out, float threshold) {
    for (long i = 0; i < n; i++) {
        float v = in[i];
        if (v > threshold)
            v = threshold + (v - threshold) * 0.25f;
        else if (v < -threshold)
            v = -threshold + (v + threshold) * 0.25f;
        out[i] = v;
    }
    return 0;
}
