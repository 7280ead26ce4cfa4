void undistort(double *frame, const double *table, int n) {
    for (int i = 0; i < n; i++)
        frame[i] *= table[i];
}
