// Samples at rest and the batches that are made of them, as Python sees them.
#include "view/stack.hpp"

#include <mutex>
#include <string>
#include <tuple>

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/vec.hpp"
#include "vec/pool.hpp"

namespace nb = nanobind;

namespace dota {

namespace {

// The bytes of a Python object, which stays as long as this does.
class Held {
 public:
  Held(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  ~Held() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  Held(Held&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  Held& operator=(Held&&) = delete;

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(view_.buf); }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

std::string numbered(const char* what, std::size_t index) { return std::string(what) + std::to_string(index); }

// Several arrays, all cut into as many parts, in the bytes that they came in.
struct Stored {
  Stored() = default;
  Stored(Stored&&) = default;
  Stored(const Stored&) = delete;
  Stored& operator=(Stored&&) = delete;
  Stored& operator=(const Stored&) = delete;

  std::vector<Held> held;
  std::vector<StoredArray> arrays;
  std::size_t parts = 0;
};

using Described = std::tuple<nb::object, std::size_t, std::size_t, int, std::size_t, std::size_t>;

void make_stored(Stored* self, const std::vector<Described>& arrays, std::size_t parts) {
  Stored made;
  made.parts = parts;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    const auto& [object, begin, size, form, rows, width] = arrays[k];
    if (form < 0 || form >= static_cast<int>(Form::Count)) throw nb::value_error("stored: there is no such form");
    const Held& bytes = made.held.emplace_back(object, PyBUF_SIMPLE);
    StoredArray& array = made.arrays.emplace_back();
    if (begin > bytes.size() || size > bytes.size() - begin)
      throw nb::value_error(numbered("stored: its bytes do not hold array ", k).c_str());
    array.data = {bytes.data() + begin, size};
    array.form = static_cast<Form>(form);
    array.rows = rows;
    array.width = width;
    if (!index_parts(array, parts))
      throw nb::value_error(numbered("stored: bytes, form and sizes do not fit together in array ", k).c_str());
  }
  new (self) Stored(std::move(made));
}

// Writes samples side by side, on several threads.
class Stacker {
 public:
  explicit Stacker(int threads) : pool_(threads) {}

  void stack(const std::vector<const Stored*>& sets, const std::vector<std::size_t>& parts, const nb::list& outs,
             int way) {
    if (sets.size() != parts.size()) throw nb::value_error("stack: as many parts as sets are needed");
    if (sets.empty()) return;
    if (way < 0 || way >= static_cast<int>(UnpackWay::Count))
      throw nb::value_error("stack: there is no such way to unpack");
    std::vector<Held> targets;
    for (const nb::handle out : outs)
      targets.emplace_back(out, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS);
    const std::size_t samples = sets.size();
    for (std::size_t b = 0; b < samples; ++b) {
      const Stored& set = *sets[b];
      if (parts[b] >= set.parts) throw nb::index_error("stack: a part that its set does not have");
      if (set.arrays.size() != targets.size()) throw nb::value_error("stack: one target an array is needed");
      for (std::size_t k = 0; k < targets.size(); ++k) {
        const StoredArray &array = set.arrays[k], &first = sets[0]->arrays[k];
        if (array.rows != first.rows || array.width != first.width)
          throw nb::value_error(numbered("stack: sets differ in the size of array ", k).c_str());
        if (targets[k].size() != samples * array.rows * array.width)
          throw nb::value_error(numbered("stack: the target has another size than array ", k).c_str());
      }
    }
    nb::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    pool_.run(static_cast<int>(samples), [&](int, int index, int) {
      const auto b = static_cast<std::size_t>(index);
      for (std::size_t k = 0; k < targets.size(); ++k) {
        const StoredArray& array = sets[b]->arrays[k];
        write_part(array, parts[b], targets[k].data() + b * array.width, samples * array.width,
                   static_cast<UnpackWay>(way));
      }
    });
  }

 private:
  Pool pool_;
  std::mutex mutex_;
};

}  // namespace

void bind_stack(nb::module_& m) {
  nb::class_<Stored>(m, "Stored",
                     "Arrays at rest, each cut along its first dimension into the same number of parts.")
      .def("__init__", make_stored, nb::arg("arrays"), nb::arg("parts"),
           "`arrays`: of each what holds its bytes, where they begin there and how many they are, form, rows of a "
           "part and bytes of a row.")
      .def_ro("parts", &Stored::parts);
  nb::class_<Stacker>(m, "Stacker", "Puts parts of stored arrays side by side, on several threads.")
      .def(nb::init<int>(), nb::arg("threads"))
      .def("stack", &Stacker::stack, nb::arg("sets"), nb::arg("parts"), nb::arg("outs"), nb::arg("way") = 0,
           "Writes part `parts[b]` of `sets[b]` into column b of the arrays `outs`, rows first.");
}

}  // namespace dota
