#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/failure.h"
#include "engine/backend/cpu/convolution_library.h"
#include "engine/backend/cpu/onednn_compat.h"
#include "engine/plan/plan.h"

namespace halfwatt::cpu {
namespace {

using Wanted = ConvolutionCall::Result;

/// A primitive over some images.
struct Ready {
  Index images;
  ConvolutionMemory memory;
  dnnl::primitive primitive;
  dnnl::memory::desc scratch;
};

std::size_t bytes_of_numbers(Index count, DType dtype) {
  return static_cast<std::size_t>(count) * bytes_of(dtype);
}

Index weights_of(const ConvolutionShape& shape) {
  return shape.outputs * shape.channels * shape.kernel_height * shape.kernel_width;
}

// Where a thread's part of `count` images begins.
Index part_begin(Index count, Index parts, Index part) { return count * part / parts; }

class OneDnnConvolutions final : public ConvolutionLibrary {
 public:
  OneDnnConvolutions() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    attributes_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  bool has(const Workers& workers, const ConvolutionCall& call) override {
    return !ready(workers.threads(), call).empty();
  }

  // Of each thread the library's own; of each but the first a gradient of the weights.
  std::size_t workspace(const Workers& workers, const ConvolutionCall& call) override {
    std::size_t bytes = 0;
    const std::vector<Ready>& all = ready(workers.threads(), call);
    for (const Ready& each : all) {
      bytes += aligned(each.scratch.get_size());
    }
    const std::size_t partial =
        call.result == Wanted::weights ? bytes_of_weights(call.shape) : 0;
    return bytes + (all.size() - 1) * partial;
  }

  void run(Workers& workers,
           const ConvolutionCall& call,
           const ConvolutionOperands& operands) override {
    const std::vector<Ready>& all = ready(workers.threads(), call);
    const auto parts = static_cast<Index>(all.size());
    workers.parallel_for(parts, 1, [&](Index begin, Index end, int) {
      // Our threads are the threads: the library is to start none, nor keep any spinning.
      ::omp_set_num_threads(1);
      for (Index part = begin; part < end; ++part) {
        run_part(call, all, part, operands);
      }
    });
    if (call.result == Wanted::weights) {
      add_up(workers, call, all, operands);
    }
  }

 private:
  // By thread; none if the library does not compute that.
  const std::vector<Ready>& ready(int threads, const ConvolutionCall& call) {
    const auto known = ready_.find(call);
    if (known != ready_.end()) {
      return known->second;
    }
    ::omp_set_num_threads(1);
    const Index parts = std::min<Index>(threads, call.shape.images);
    std::vector<Ready> all;
    for (Index part = 0; part < parts; ++part) {
      const Index count = part_begin(call.shape.images, parts, part + 1) -
                          part_begin(call.shape.images, parts, part);
      if (auto made = make(call, call.result == Wanted::weights ? count : 1)) {
        all.push_back(std::move(*made));
      }
    }
    if (static_cast<Index>(all.size()) < parts) {
      all.clear();
    }
    return ready_.emplace(call, std::move(all)).first->second;
  }

  static std::size_t bytes_of_weights(const ConvolutionShape& shape) {
    return aligned(bytes_of_numbers(weights_of(shape), DType::f32));
  }

  static ConvolutionMemory memory_of(const ConvolutionCall& call, Index images, DType weights) {
    using Tag = dnnl::memory::format_tag;
    using Type = dnnl::memory::data_type;
    const auto type = [](DType dtype) { return dtype == DType::bf16 ? Type::bf16 : Type::f32; };
    const ConvolutionShape& of = call.shape;
    return {{{images, of.channels, of.height, of.width}, type(call.dtype), Tag::nchw},
            {{of.outputs, of.channels, of.kernel_height, of.kernel_width},
             type(weights),
             Tag::oihw},
            {{of.outputs}, Type::f32, Tag::x},
            {{images, of.outputs, of.out_height, of.out_width}, type(call.dtype), Tag::nchw},
            call.has_bias,
            {of.stride, of.stride},
            {of.padding, of.padding}};
  }

  // What it does not compute, it says only when asked for it; and some of what it computes, by
  // loops over single numbers that it calls references.
  std::optional<Ready> make(const ConvolutionCall& call, Index images) {
    const ConvolutionMemory memory = memory_of(call, images, call.dtype);
    const auto kept = [&](const auto& description, dnnl::primitive primitive,
                          const ConvolutionMemory& of) {
      const std::string_view how = description.impl_info_str();
      return how.substr(0, 3) == "ref" ? std::nullopt
                                       : std::optional(Ready{images, of, std::move(primitive),
                                                             description.scratchpad_desc()});
    };
    try {
      const auto forward = convolution_primitive(engine_, memory, attributes_);
      if (call.result == Wanted::outputs) {
        return kept(forward, dnnl::convolution_forward(forward), memory);
      }
      if (call.result == Wanted::images) {
        const auto made = images_gradient_primitive(engine_, memory, forward, attributes_);
        return kept(made, dnnl::convolution_backward_data(made), memory);
      }
      const ConvolutionMemory wide = memory_of(call, images, DType::f32);
      const auto made = weights_gradient_primitive(engine_, wide, forward, attributes_);
      return kept(made, dnnl::convolution_backward_weights(made), wide);
    } catch (const dnnl::error&) {
      return std::nullopt;
    }
  }

  // Where the part's share of the workspace is: first the library's own, then the partial sums.
  static std::byte* own_scratch(const std::vector<Ready>& all,
                                Index part,
                                std::byte* workspace) {
    for (Index before = 0; before < part; ++before) {
      workspace += aligned(all[static_cast<std::size_t>(before)].scratch.get_size());
    }
    return workspace;
  }
  static std::byte* sums_of(const ConvolutionCall& call,
                            const std::vector<Ready>& all,
                            Index part,
                            const ConvolutionOperands& operands) {
    return part == 0 ? operands.weights
                     : own_scratch(all, static_cast<Index>(all.size()), operands.workspace) +
                           static_cast<std::size_t>(part - 1) * bytes_of_weights(call.shape);
  }

  void run_part(const ConvolutionCall& call,
                const std::vector<Ready>& all,
                Index part,
                const ConvolutionOperands& operands) {
    const ConvolutionShape& shape = call.shape;
    const auto parts = static_cast<Index>(all.size());
    const Ready& ready = all[static_cast<std::size_t>(part)];
    const Index first = part_begin(shape.images, parts, part);
    const Index end = part_begin(shape.images, parts, part + 1);
    const bool gives_weights = call.result == Wanted::weights;
    std::byte* const weights =
        gives_weights ? sums_of(call, all, part, operands) : operands.weights;
    std::byte* const scratch = own_scratch(all, part, operands.workspace);
    const std::size_t of_image =
        bytes_of_numbers(shape.channels * shape.height * shape.width, call.dtype);
    const std::size_t of_output =
        bytes_of_numbers(shape.outputs * shape.out_height * shape.out_width, call.dtype);
    for (Index image = first; image < end; image += ready.images) {
      const auto at = static_cast<std::size_t>(image);
      execute(call, ready,
              {operands.images + at * of_image, weights, operands.bias,
               operands.outputs + at * of_output, scratch});
    }
  }

  void execute(const ConvolutionCall& call,
               const Ready& ready,
               const ConvolutionOperands& operands) {
    const bool of_images = call.result == Wanted::images;
    const bool of_weights = call.result == Wanted::weights;
    std::unordered_map<int, dnnl::memory> arguments = {
        {of_images ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC,
         {ready.memory.images, engine_, operands.images}},
        {of_weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS,
         {ready.memory.weights, engine_, operands.weights}},
        {call.result == Wanted::outputs ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST,
         {ready.memory.outputs, engine_, operands.outputs}},
        {DNNL_ARG_SCRATCHPAD, {ready.scratch, engine_, operands.workspace}}};
    if (call.has_bias) {
      arguments[DNNL_ARG_BIAS] = {ready.memory.bias, engine_,
                                  const_cast<float*>(operands.bias)};
    }
    try {
      ready.primitive.execute(stream_, arguments);
    } catch (const dnnl::error& error) {
      throw Failure({ErrorKind::device, fmt::format("oneDNN: {}", error.what())});
    }
  }

  // The parts' gradients of the weights, in their order.
  static void add_up(Workers& workers,
                     const ConvolutionCall& call,
                     const std::vector<Ready>& all,
                     const ConvolutionOperands& operands) {
    constexpr Index kGrain = 4096;
    auto* const sum = reinterpret_cast<float*>(operands.weights);
    workers.parallel_for(weights_of(call.shape), kGrain, [&](Index begin, Index end, int) {
      for (Index part = 1; part < static_cast<Index>(all.size()); ++part) {
        const auto* const more =
            reinterpret_cast<const float*>(sums_of(call, all, part, operands));
        for (Index at = begin; at < end; ++at) {
          sum[at] += more[at];
        }
      }
    });
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive_attr attributes_;
  std::map<ConvolutionCall, std::vector<Ready>> ready_;
};

}  // namespace

std::unique_ptr<ConvolutionLibrary> open_convolution_library() {
  return std::make_unique<OneDnnConvolutions>();
}

}  // namespace halfwatt::cpu
