/* Predictions of manyboost models in C: read a model file, predict what Python predicts.
 *
 * Build the library with any rustc from 1.63 on, in the folder crates/predict:
 *
 *     rustc --edition 2021 -O --crate-name manyboost_predict --cfg 'feature="c"' \
 *         --crate-type cdylib src/lib.rs
 *
 * (staticlib instead of cdylib for a static library). A model does not change once it is open, so
 * threads may share it. Rows are arrays of doubles, row after row; NaN is a missing value, and a
 * categorical feature holds the number that fit saw (of text in a frame: the number of its label).
 */

#ifndef MANYBOOST_PREDICT_H
#define MANYBOOST_PREDICT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct manyboost_model manyboost_model;

enum {
    MANYBOOST_OK = 0,
    MANYBOOST_NEEDS_OFFSET = 1, /* fitted with an offset: raw, add offsets, finish */
    MANYBOOST_NO_LINK = 2,      /* a custom loss without probabilities: use raw */
    MANYBOOST_NO_CLASSES = 3,   /* it predicts numbers, which nothing is chosen from */
    MANYBOOST_FAILED = -1       /* a defect of this library; please report it */
};

/* Reads the bytes of a model file, which are not needed afterwards. NULL: it is not sound, and
 * `message` (may be NULL) says why, in one sentence. */
manyboost_model *manyboost_open(const uint8_t *data, size_t size, char *message,
                                size_t message_size);
void manyboost_close(manyboost_model *model);

/* Numbers of a row: features, raw predictions, and predictions (two for two classes). */
size_t manyboost_features(const manyboost_model *model);
size_t manyboost_outputs(const manyboost_model *model);
size_t manyboost_columns(const manyboost_model *model);

/* Predictions of a regressor, probabilities of a classifier: n_rows * columns numbers. */
int manyboost_predict(const manyboost_model *model, const double *rows, size_t n_rows,
                      double *predictions);

/* The same in two steps: raw predictions (n_rows * outputs), and what they become. */
int manyboost_raw(const manyboost_model *model, const double *rows, size_t n_rows, double *raw);
int manyboost_finish(const manyboost_model *model, const double *raw, size_t n_rows,
                     double *predictions);

/* 1 in the columns of the class or labels that Python's predict would choose, else 0. */
int manyboost_choose(const manyboost_model *model, const double *raw, size_t n_rows,
                     uint8_t *chosen);

/* Names in UTF-8. They are cut short where there is no room; the result is the size they need with
 * their final zero, or 0 if there is no such name. */
size_t manyboost_feature_name(const manyboost_model *model, size_t feature, char *text,
                              size_t size);
size_t manyboost_column_name(const manyboost_model *model, size_t column, char *text, size_t size);
size_t manyboost_category_label(const manyboost_model *model, size_t feature, size_t category,
                                char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
