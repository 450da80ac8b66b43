/* Reads a model file and rows of numbers from the standard input, and prints predictions:
 *
 *     predict model.mb < rows.txt
 *
 * Numbers are separated by spaces; "nan" is a missing value. */

#include <stdio.h>
#include <stdlib.h>

#include "manyboost_predict.h"

static uint8_t *file_contents(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t room = 0, got = 0;
    if (file == NULL) return NULL;
    *size = 0;
    do {
        room += 1 << 16;
        data = realloc(data, room);
        if (data == NULL) exit(1);
        got = fread(data + *size, 1, room - *size, file);
        *size += got;
    } while (*size == room);
    fclose(file);
    return data;
}

int main(int argc, char **argv) {
    char text[200];
    size_t size, j;
    uint8_t *data = argc == 2 ? file_contents(argv[1], &size) : NULL;
    if (data == NULL) {
        fprintf(stderr, "usage: predict model.mb < rows.txt\n");
        return 1;
    }
    manyboost_model *model = manyboost_open(data, size, text, sizeof text);
    free(data);
    if (model == NULL) {
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    size_t n_features = manyboost_features(model), n_columns = manyboost_columns(model);
    double *row = calloc(n_features, sizeof(double));
    double *predictions = calloc(n_columns, sizeof(double));
    int status = row == NULL || predictions == NULL;
    for (j = 0; j < n_columns; j++) {
        manyboost_column_name(model, j, text, sizeof text);
        printf("%s%s", text, j + 1 < n_columns ? "\t" : "\n");
    }
    while (status == MANYBOOST_OK) {
        for (j = 0; j < n_features && scanf("%lf", &row[j]) == 1; j++) {
        }
        if (j < n_features) break;
        status = manyboost_predict(model, row, 1, predictions);
        for (j = 0; j < n_columns && status == MANYBOOST_OK; j++) {
            /* Hexadecimal digits hold a double exactly. */
            printf("%a%s", predictions[j], j + 1 < n_columns ? "\t" : "\n");
        }
    }
    if (status != MANYBOOST_OK) fprintf(stderr, "no predictions: status %d\n", status);
    free(row);
    free(predictions);
    manyboost_close(model);
    return status != MANYBOOST_OK;
}
