// Linear layers over a few rows or some hundreds, with their weights laid out for the processor beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace five {

// What products are made with.
enum class Instructions : std::uint8_t { kPortable, kAvx2, kAvx512 };

// The widest that this processor has.
Instructions best_instructions();

// y = x W^T + b. Sums are in float32, in the order of the inputs, with products that are not rounded where the
// processor has such an instruction.
class Layer {
 public:
  enum class After : std::uint8_t { kNothing, kRelu };

  Layer() = default;
  // `weight` [out][in], `bias` [out] or null: zeros. Both are copied.
  Layer(std::size_t in, std::size_t out, const float* weight, const float* bias, Instructions with);

  std::size_t in() const { return in_; }
  std::size_t out() const { return out_; }

  // Of `rows` rows x, `x_stride` numbers apart, into y, `y_stride` apart. `add`: y is added to what it holds.
  void operator()(const float* x, std::size_t x_stride, std::size_t rows, float* y, std::size_t y_stride,
                  bool add = false, After after = After::kNothing) const;

 private:
  struct Freed {
    void operator()(float* memory) const;
  };

  std::size_t in_ = 0, out_ = 0, lanes_ = 0;
  Instructions with_ = Instructions::kPortable;
  // Panels of up to three vectors' width: [in][width], each followed by its width of the bias.
  std::unique_ptr<float, Freed> panels_;
};

}  // namespace five
