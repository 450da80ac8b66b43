/* The scan of one sorted feature by an exact splitter of the time of the paper, for variance
 * reduction: rows move from right to left one by one, with sums and sums of squares of both sides,
 * and at every threshold the variances of both sides are computed, for each of q columns.
 * Only measured, by cost_measurement.py: it finds no splits for anybody. */
#include <stddef.h>

double scan(size_t n, size_t q, const long *order, const char *is_threshold, const double *y,
            double *sum_left, double *sum_right, double *square_left, double *square_right) {
    double best = -1e300;
    for (size_t p = 0; p + 1 < n; p++) {
        const double *row = y + order[p] * q;
        for (size_t k = 0; k < q; k++) {
            double value = row[k], square = value * value;
            sum_left[k] += value;
            sum_right[k] -= value;
            square_left[k] += square;
            square_right[k] -= square;
        }
        if (!is_threshold[p])
            continue;
        double n_left = p + 1, n_right = n - p - 1, impurity = 0;
        for (size_t k = 0; k < q; k++) {
            double mean_left = sum_left[k] / n_left, mean_right = sum_right[k] / n_right;
            impurity += n_left * (square_left[k] / n_left - mean_left * mean_left);
            impurity += n_right * (square_right[k] / n_right - mean_right * mean_right);
        }
        if (-impurity > best)
            best = -impurity;
    }
    return best;
}
