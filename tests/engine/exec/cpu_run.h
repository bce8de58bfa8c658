#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/exec/session.h"
#include "engine/tensor/convert.h"

namespace halfwatt {

/// The numbers of a tensor of floats or integers.
inline std::vector<double> doubles(const Tensor& tensor) {
  Tensor wide(TensorType{DType::f64, tensor.shape()});
  convert(tensor.view(), wide.view());
  const auto values = wide.as<double>();
  return {values.begin(), values.end()};
}

/// `values` as a tensor of `type`, rounded to it; one value fills it. Integers are whole ones.
inline Tensor tensor_of(const TensorType& type, std::vector<double> values) {
  const auto count = static_cast<std::size_t>(type.shape.elements());
  values.resize(count, values.empty() ? 0.0 : values.back());
  if (type.dtype == DType::i64) {
    const std::vector<std::int64_t> whole(values.begin(), values.end());
    return Tensor::of<std::int64_t>(DType::i64, type.shape, whole);
  }
  if (type.dtype == DType::boolean || type.dtype == DType::u8) {
    const std::vector<std::uint8_t> bytes(values.begin(), values.end());
    return Tensor::of<std::uint8_t>(type.dtype, type.shape, bytes);
  }
  Tensor tensor(type);
  convert(Tensor::of<double>(DType::f64, type.shape, values).view(), tensor.view());
  return tensor;
}

/// What a result holds; its error is thrown, and ends the test.
template <class T>
T taken(Result<T> result) {
  return result ? std::move(*result) : throw std::runtime_error(result.error().message);
}

/// Graphs over the same states on a device, ready to be run again and again.
class BackendRun {
 public:
  BackendRun(std::unique_ptr<Backend> backend, const std::vector<Graph>& graphs)
      : backend_(std::move(backend)) {
    std::vector<Plan> plans;
    for (const Graph& graph : graphs) {
      plans.push_back(taken(lower(graph, {&backend_->target(), 1})));
    }
    session_ = taken(Session::open(std::move(plans), {backend_.get()}, states_));
  }

  States& states() { return states_; }
  Session& session() { return *session_; }

  void load(const std::string& state, const Tensor& value) {
    const auto loaded = states_.load(state, value.view());
    EXPECT_TRUE(loaded) << loaded.error().message;
  }
  /// An input in the dtype that the plan has it in; passed over where it has none of that name.
  void bind(const std::string& input, const Tensor& value, int plan = 0) {
    for (const PlanInput& each : session_->plan(plan).inputs) {
      if (each.name == input) {
        Tensor converted(each.type);
        convert(value.view(), converted.view());
        session_->bind(plan, input, converted.view());
      }
    }
  }
  void bind(const std::string& input, std::vector<double> values, int plan = 0) {
    for (const PlanInput& each : session_->plan(plan).inputs) {
      if (each.name == input) {
        session_->bind(plan, input, tensor_of(each.type, std::move(values)).view());
        return;
      }
    }
  }
  void run(int plan = 0) {
    const auto ran = session_->run(plan);
    EXPECT_TRUE(ran) << ran.error().message;
  }
  Tensor result(const std::string& name, int plan = 0) const {
    return session_->result(plan, name);
  }
  std::vector<double> numbers(const std::string& name, int plan = 0) const {
    const Tensor value = result(name, plan);
    if (value.dtype() == DType::boolean) {
      const auto flags = value.as<std::uint8_t>();
      return {flags.begin(), flags.end()};
    }
    return doubles(value);
  }
  double number(const std::string& name, int plan = 0) const { return numbers(name, plan)[0]; }
  std::vector<double> state(const std::string& name) const {
    return doubles(states_.save(name));
  }

 private:
  std::unique_ptr<Backend> backend_;
  States states_;
  std::unique_ptr<Session> session_;
};

inline std::unique_ptr<Backend> opened_cpu(int threads) {
  auto backend = open_cpu({"cpu", threads});
  EXPECT_TRUE(backend) << backend.error().message;
  return std::move(*backend);
}

/// The same on the CPU.
class CpuRun : public BackendRun {
 public:
  explicit CpuRun(const Graph& graph, int threads = 0)
      : CpuRun(std::vector<Graph>{graph}, threads) {}
  explicit CpuRun(const std::vector<Graph>& graphs, int threads = 0)
      : BackendRun(opened_cpu(threads), graphs) {}
};

/// Whether two tensors are of one type and have the same bits.
inline bool same_bits(const Tensor& one, const Tensor& other) {
  const auto a = one.view().bytes();
  const auto b = other.view().bytes();
  return one.type() == other.type() && std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace halfwatt
