// Every op in every storage format, instruction set and number of threads, against fp64.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/product_library.h"
#include "engine/exec/example_run.h"

namespace halfwatt {
namespace {

constexpr DType kStorages[] = {DType::f32, DType::bf16, DType::f16, DType::e4m3, DType::e5m2};

/// What kernels run with, while it lives.
class IsaInForce {
 public:
  explicit IsaInForce(cpu::Isa isa) {
    const char* const before = std::getenv("HALFWATT_ISA");
    had_ = before != nullptr;
    before_ = had_ ? before : "";
    ::setenv("HALFWATT_ISA", std::string(cpu::text(isa)).c_str(), 1);
  }
  ~IsaInForce() {
    had_ ? ::setenv("HALFWATT_ISA", before_.c_str(), 1) : ::unsetenv("HALFWATT_ISA");
  }
  IsaInForce(const IsaInForce&) = delete;
  IsaInForce& operator=(const IsaInForce&) = delete;

 private:
  bool had_;
  std::string before_;
};

std::vector<cpu::Isa> isas() {
  std::vector<cpu::Isa> all;
  for (const cpu::Isa isa : cpu::kIsas) {
    if (cpu::machine_has(isa)) {
      all.push_back(isa);
    }
  }
  return all;
}

/// All outputs of an example that is computed in `dtype`.
std::vector<Tensor> outputs(const OpExample& example,
                            DType dtype,
                            const std::vector<Tensor>& inputs,
                            int threads) {
  return example_outputs(opened_cpu(threads), example, dtype, inputs);
}

bool is_in_a_library(Op op) {
  return op == Op::matmul || op == Op::convolution || op == Op::convolution_input_gradient ||
         op == Op::convolution_weight_gradient;
}

class Storage : public testing::TestWithParam<cpu::Isa> {};

TEST_P(Storage, has_an_example_of_every_op_that_is_no_update) {
  std::set<Op> seen;
  for (const OpExample& example : op_examples()) {
    seen.insert(example.op);
  }
  for (int at = 0; at < kOps; ++at) {
    const OpDef& row = definition(static_cast<Op>(at));
    // The weights of a linear node lie as one ISA and format want it: linear_test.cpp.
    const bool computes = row.numeric != NumericClass::source &&
                          row.numeric != NumericClass::update && row.op != Op::linear;
    EXPECT_EQ(computes, seen.count(row.op) == 1) << row.name;
  }
}

TEST_P(Storage, is_within_its_rounding_of_fp64_on_the_same_numbers) {
  for (const OpExample& example : op_examples()) {
    for (const DType storage : kStorages) {
      SCOPED_TRACE(text(example) + " " + std::string(text(storage)));
      const std::vector<Tensor> inputs = stored_inputs(example, storage);
      const std::vector<Tensor> wanted = outputs(example, DType::f64, inputs, 1);
      const IsaInForce isa(GetParam());
      const std::vector<Tensor> got = outputs(example, storage, inputs, 2);
      for (std::size_t at = 0; at < got.size(); ++at) {
        const std::vector<double> exact = doubles(wanted[at]);
        // Normed, a number is about as far off as it was, in units of the largest.
        const double between = 2 * example.stored_between * half_ulp(storage);
        EXPECT_LE(off(doubles(got[at]), exact),
                  store_error(got[at].dtype(), exact) + sum_error(example) + between)
            << "output " << at;
      }
    }
  }
}

TEST_P(Storage, has_the_same_bits_on_one_two_and_three_threads) {
  const IsaInForce isa(GetParam());
  const bool has_library = std::string_view(cpu::product_library_name()) != "none";
  for (const OpExample& example : op_examples()) {
    for (const DType storage : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(text(example) + " " + std::string(text(storage)));
      const std::vector<Tensor> inputs = stored_inputs(example, storage);
      const std::vector<Tensor> one = outputs(example, storage, inputs, 1);
      // A library may sum the parts of a product in another order where they are cut otherwise.
      const bool is_foreign =
          has_library && is_in_a_library(example.op) && storage != DType::f64;
      for (const int threads : {2, 3}) {
        const std::vector<Tensor> more = outputs(example, storage, inputs, threads);
        for (std::size_t at = 0; at < one.size(); ++at) {
          const std::vector<double> wanted = doubles(one[at]);
          if (is_foreign) {
            EXPECT_LE(off(doubles(more[at]), wanted),
                      2 * store_error(storage, wanted) + sum_error(example));
          } else {
            EXPECT_TRUE(same_bits(one[at], more[at])) << threads << ", output " << at;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas,
                         Storage,
                         testing::ValuesIn(isas()),
                         [](const testing::TestParamInfo<cpu::Isa>& isa) {
                           return std::string(cpu::text(isa.param));
                         });

template <class... Each>
std::vector<Tensor> copies(const Each&... tensors) {
  std::vector<Tensor> all;
  (all.push_back(tensors.copy()), ...);
  return all;
}

// What fuse makes of a sum and a norm, against the two.
TEST(AddLayerNorm, has_the_bits_of_a_sum_and_the_norm_of_it) {
  const OpExample* fused = nullptr;
  for (const OpExample& example : op_examples()) {
    fused = example.op == Op::add_layer_norm ? &example : fused;
  }
  ASSERT_TRUE(fused);
  for (const DType storage : kStorages) {
    SCOPED_TRACE(text(storage));
    const std::vector<Tensor> inputs = stored_inputs(*fused, storage);
    const std::vector<Tensor> both = outputs(*fused, storage, inputs, 2);
    const OpExample add{Op::add, {fused->inputs[0], fused->inputs[1]}, {}};
    const OpExample norm{Op::layer_norm,
                         {fused->inputs[0], fused->inputs[2], fused->inputs[3]},
                         fused->attributes};
    const Tensor sum = std::move(outputs(add, storage, copies(inputs[0], inputs[1]), 2)[0]);
    EXPECT_TRUE(same_bits(both[0], sum));
    const std::vector<Tensor> normed =
        outputs(norm, storage, copies(sum, inputs[2], inputs[3]), 2);
    for (std::size_t at = 0; at < 3; ++at) {
      EXPECT_TRUE(same_bits(both[at + 1], normed[at])) << at;
    }
  }
}

// [1, 3, 1] in [2, 3, 4]: neither outer nor inner extents alone are spread.
TEST(Cpu, refuses_to_spread_along_extents_that_do_not_lie_together) {
  auto backend = open_cpu();
  for (const Op op : {Op::expand, Op::sum_to}) {
    const bool is_sum = op == Op::sum_to;
    const Shape part{1, 3, 1};
    const Shape whole{2, 3, 4};
    Graph graph;
    Builder build(graph);
    const Value x = build.input("x", {DType::f32, is_sum ? whole : part});
    graph.set_result("y", build.add(op, {x}, {{"shape", is_sum ? part : whole}}));
    const auto plan = lower(graph, {&(*backend)->target(), 1});
    ASSERT_FALSE(plan);
    EXPECT_NE(plan.error().message.find("extents that do not lie together"), std::string::npos);
  }
}

}  // namespace
}  // namespace halfwatt
