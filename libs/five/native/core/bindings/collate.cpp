// Python bindings of stored samples and their collation into batches.
#include "stored_array.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <tuple>

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/module.hpp"

namespace nb = nanobind;

namespace five {

namespace {

// The buffer of a Python object, which it keeps alive.
class Buffer {
 public:
  Buffer(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  ~Buffer() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  Buffer(Buffer&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(view_.buf); }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

std::string indexed(const char* what, std::size_t index) { return std::string(what) + std::to_string(index); }

// Arrays in the bytes in which they arrived, each cut into `parts` parts.
struct StoredSet {
  StoredSet() = default;
  StoredSet(StoredSet&&) = default;
  StoredSet(const StoredSet&) = delete;
  StoredSet& operator=(StoredSet&&) = delete;
  StoredSet& operator=(const StoredSet&) = delete;

  std::vector<Buffer> buffers;
  std::vector<StoredArray> arrays;
  std::size_t parts = 0;
};

// Object with the bytes, begin, size, encoding, rows of a part and bytes of a row.
using ArrayTuple = std::tuple<nb::object, std::size_t, std::size_t, int, std::size_t, std::size_t>;

void make_set(StoredSet* self, const std::vector<ArrayTuple>& arrays, std::size_t parts) {
  StoredSet set;
  set.parts = parts;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    const auto& [object, begin, size, encoding, rows, width] = arrays[k];
    if (encoding < 0 || encoding >= static_cast<int>(Encoding::Count))
      throw nb::value_error(indexed("stored set: unknown encoding of array ", k).c_str());
    const Buffer& bytes = set.buffers.emplace_back(object, PyBUF_SIMPLE);
    StoredArray& array = set.arrays.emplace_back();
    if (begin > bytes.size() || size > bytes.size() - begin)
      throw nb::value_error(indexed("stored set: the buffer is too small for array ", k).c_str());
    array.data = {bytes.data() + begin, size};
    array.encoding = static_cast<Encoding>(encoding);
    array.rows = rows;
    array.width = width;
    if (!index_parts(array, parts))
      throw nb::value_error(indexed("stored set: bytes do not match encoding and size of array ", k).c_str());
  }
  new (self) StoredSet(std::move(set));
}

// Unpacks samples side by side on several threads.
class Collator {
 public:
  explicit Collator(int threads) : threads_(static_cast<std::size_t>(std::max(threads, 1))) {}

  void collate(const std::vector<const StoredSet*>& sets, const std::vector<std::size_t>& parts,
               const nb::list& outs, int method) {
    if (sets.size() != parts.size()) throw nb::value_error("collate: sets and parts differ in number");
    if (sets.empty()) return;
    if (method < 0 || method >= static_cast<int>(UnpackMethod::Count))
      throw nb::value_error("collate: unknown unpack method");
    std::vector<Buffer> targets;
    for (const nb::handle out : outs)
      targets.emplace_back(out, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS);
    const std::size_t samples = sets.size();
    for (std::size_t b = 0; b < samples; ++b) {
      const StoredSet& set = *sets[b];
      if (parts[b] >= set.parts) throw nb::index_error("collate: the set has no such part");
      if (set.arrays.size() != targets.size())
        throw nb::value_error("collate: arrays and targets differ in number");
      for (std::size_t k = 0; k < targets.size(); ++k) {
        const StoredArray &array = set.arrays[k], &first = sets[0]->arrays[k];
        if (array.rows != first.rows || array.width != first.width)
          throw nb::value_error(indexed("collate: sets differ in the size of array ", k).c_str());
        if (targets[k].size() != samples * array.rows * array.width)
          throw nb::value_error(indexed("collate: wrong target size for array ", k).c_str());
      }
    }
    nb::gil_scoped_release release;
    std::atomic<std::size_t> next{0};
    const auto unpack = [&] {
      for (std::size_t b = next++; b < samples; b = next++)
        for (std::size_t k = 0; k < targets.size(); ++k) {
          const StoredArray& array = sets[b]->arrays[k];
          write_part(array, parts[b], targets[k].data() + b * array.width, samples * array.width,
                     static_cast<UnpackMethod>(method));
        }
    };
    // Starting a thread costs up to 75 µs a batch. A batch of gpu-node, which has several, takes 10 ms on one.
    std::vector<std::jthread> helpers;
    for (std::size_t t = 1; t < std::min(threads_, samples); ++t)
      helpers.emplace_back(unpack);
    unpack();
  }

 private:
  std::size_t threads_;
};

}  // namespace

void bind_collate(nb::module_& m) {
  nb::class_<StoredSet>(m, "StoredSet",
                        "Stored arrays, each cut along its first dimension into the same number of parts.")
      .def("__init__", make_set, nb::arg("arrays"), nb::arg("parts"),
           "`arrays`: (object with the bytes, begin, size, encoding, rows of a part, bytes of a row) each.")
      .def_ro("parts", &StoredSet::parts);
  nb::class_<Collator>(m, "Collator", "Unpacks parts of stored sets side by side on several threads.")
      .def(nb::init<int>(), nb::arg("threads"))
      .def("collate", &Collator::collate, nb::arg("sets"), nb::arg("parts"), nb::arg("outs"),
           nb::arg("method") = 0,
           "Writes part `parts[b]` of `sets[b]` into column b of the arrays `outs`, rows first.");
}

}  // namespace five
