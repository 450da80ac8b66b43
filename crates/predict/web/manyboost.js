// Predictions of manyboost models in JavaScript, by WebAssembly. In the folder crates/predict:
//
//     rustc --edition 2021 -O --crate-name manyboost_predict --cfg 'feature="c"' \
//         --crate-type cdylib --target wasm32-unknown-unknown src/lib.rs -o web/manyboost.wasm
//
//     const manyboost = await Runtime.load(await fetch("manyboost.wasm"));
//     const model = manyboost.open(await file.arrayBuffer());
//     const predictions = model.predict([[0.5, NaN, 3]]); // one array for each row

const MESSAGE_SIZE = 1000;
const PROBLEMS = {
  1: "The model was fitted with an offset; take raw predictions, add offsets, and finish them.",
  2: "The loss of the model has no link to probabilities; take raw predictions.",
  3: "The model predicts numbers, which nothing is chosen from.",
};

export class Runtime {
  // `source` is a response of fetch, or the bytes of manyboost.wasm.
  static async load(source) {
    const bytes = source.arrayBuffer ? await source.arrayBuffer() : source;
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Runtime(instance.exports);
  }

  constructor(exports) {
    this.exports = exports;
  }

  // A model of the bytes of its file; an Error says what is wrong with them.
  open(bytes) {
    const data = new Uint8Array(bytes);
    return this.withRoom([data.length, MESSAGE_SIZE], (file, message) => {
      this.bytes(file, data.length).set(data);
      const model = this.exports.manyboost_open(file, data.length, message, MESSAGE_SIZE);
      if (model === 0) throw new Error(this.text(message));
      return new Model(this, model);
    });
  }

  // Calls f with the addresses of rooms of so many bytes, which are given back afterwards.
  withRoom(sizes, f) {
    const rooms = sizes.map((size) => this.exports.manyboost_room(size));
    try {
      return f(...rooms);
    } finally {
      rooms.forEach((room, k) => this.exports.manyboost_give_back(room, sizes[k]));
    }
  }

  // Views are made anew each time: memory moves when it grows.
  bytes(address, length) {
    return new Uint8Array(this.exports.memory.buffer, address, length);
  }

  doubles(address, length) {
    return new Float64Array(this.exports.memory.buffer, address, length);
  }

  text(address) {
    const bytes = new Uint8Array(this.exports.memory.buffer, address);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }
}

export class Model {
  constructor(runtime, address) {
    this.runtime = runtime;
    this.address = address;
    const { exports } = runtime;
    this.nFeatures = exports.manyboost_features(address);
    this.nOutputs = exports.manyboost_outputs(address);
    this.nColumns = exports.manyboost_columns(address);
    this.columnNames = this.#names(exports.manyboost_column_name);
    const names = this.#names(exports.manyboost_feature_name);
    this.featureNames = names.length ? names : null;
  }

  // Labels of the categories of a feature that was text in a frame; rows hold their places. [] if
  // it has none.
  categoryLabels(feature) {
    const get = this.runtime.exports.manyboost_category_label;
    return this.#names((model, k, text, size) => get(model, feature, k, text, size));
  }

  // Python's predict of a regressor, predict_proba of a classifier.
  predict(rows) {
    return this.#run("manyboost_predict", rows, this.nFeatures, this.nColumns);
  }

  // Predictions before the link.
  raw(rows) {
    return this.#run("manyboost_raw", rows, this.nFeatures, this.nOutputs);
  }

  // Predictions for raw ones, with offsets added if the model needs any.
  finish(raw) {
    return this.#run("manyboost_finish", raw, this.nOutputs, this.nColumns);
  }

  // Gives the memory of the model back.
  close() {
    this.runtime.exports.manyboost_close(this.address);
    this.address = 0;
  }

  #run(name, rows, width, outWidth) {
    if (this.address === 0) throw new Error("The model is closed.");
    if (rows.some((row) => row.length !== width)) {
      throw new Error(`A row does not have ${width} numbers.`);
    }
    const sizes = [8 * rows.length * width, 8 * rows.length * outWidth];
    return this.runtime.withRoom(sizes, (from, to) => {
      const values = this.runtime.doubles(from, rows.length * width);
      rows.forEach((row, i) => values.set(row, i * width));
      const status = this.runtime.exports[name](this.address, from, rows.length, to);
      if (status !== 0) throw new Error(PROBLEMS[status] ?? "The model could not predict.");
      const out = this.runtime.doubles(to, rows.length * outWidth);
      return rows.map((_, i) => Array.from(out.subarray(i * outWidth, (i + 1) * outWidth)));
    });
  }

  #names(get) {
    const names = [];
    for (;;) {
      const size = get(this.address, names.length, 0, 0);
      if (size === 0) return names;
      this.runtime.withRoom([size], (text) => {
        get(this.address, names.length, text, size);
        names.push(this.runtime.text(text));
      });
    }
  }
}
