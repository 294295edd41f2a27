// Linear layers for a few to some hundred rows, with weights in the order in which the CPU reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace five {

// Instruction sets that layers are compiled for.
enum class InstructionSet : std::uint8_t { kPortable, kAvx2, kAvx512 };

// Returns the widest that this CPU has.
InstructionSet best_instruction_set();

// y = x W^T + b. Sums are in float32 in the order of the inputs; AVX2 and AVX-512 use fused multiply-adds.
class LinearLayer {
 public:
  enum class Activation : std::uint8_t { kNone, kRelu };

  LinearLayer() = default;
  // `weight` [out][in], `bias` [out] or null for zeros. Both are copied.
  LinearLayer(std::size_t in, std::size_t out, const float* weight, const float* bias,
              InstructionSet instructions);

  std::size_t in() const { return in_; }
  std::size_t out() const { return out_; }

  // Evaluates `rows` rows of x, `x_stride` numbers apart, into y, `y_stride` apart. `accumulate` adds to y.
  void operator()(const float* x, std::size_t x_stride, std::size_t rows, float* y, std::size_t y_stride,
                  bool accumulate = false, Activation activation = Activation::kNone) const;

 private:
  struct Free {
    void operator()(float* memory) const;
  };

  std::size_t in_ = 0, out_ = 0, lanes_ = 0;
  InstructionSet instructions_ = InstructionSet::kPortable;
  // Panels of up to three vectors of columns: [in][width] weights, then [width] biases each.
  std::unique_ptr<float, Free> panels_;
};

}  // namespace five
