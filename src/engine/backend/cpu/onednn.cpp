#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/failure.h"
#include "engine/backend/cpu/onednn_compat.h"
#include "engine/backend/cpu/product_library.h"
#include "engine/plan/plan.h"

namespace halfwatt::cpu {
namespace {

// Parts begin at a multiple of this: rows and columns of its tiles.
constexpr Index kGrain = 16;
// Weights as its products of bf16 on matrix tiles (AMX) read them: its BA16a64b2a, whose blocks
// of 32 steps follow each other as pairs do. Of weights that lie otherwise every call makes a
// copy that does, in every thread.
constexpr PanelShape kPanels{64, 2};
constexpr Index kPanelDepth = 32;

dnnl::memory::data_type type_of(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc matrix(
    Index rows, Index columns, Index stride, bool transposed, DType dtype) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, stride} : dnnl::memory::dims{stride, 1};
  return {{rows, columns}, type_of(dtype), strides};
}

// The part of a product that one thread computes: along the longer side of c, so that what the
// library packs is packed by as few threads as can be; rows where b is packed already, as it
// has no tiles for a c with gaps.
struct Part {
  bool of_rows;
  Index begin, count;
};

std::vector<Part> parts_of(const ProductShape& shape, int threads) {
  const bool of_rows = shape.b_in_panels || shape.m >= shape.n;
  const Index all = of_rows ? shape.m : shape.n;
  const Index each =
      std::max(kGrain, ((all + threads - 1) / threads + kGrain - 1) / kGrain * kGrain);
  std::vector<Part> parts;
  for (Index begin = 0; begin < all; begin += each) {
    parts.push_back({of_rows, begin, std::min(each, all - begin)});
  }
  return parts;
}

struct Ready {
  Part part;
  MatmulMemory memory;
  dnnl::matmul primitive;
  std::size_t workspace;
  dnnl::memory::desc scratch;
};

class OneDnn final : public ProductLibrary {
 public:
  OneDnn() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    attributes_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    has_bf16_ = makes_bf16();
    has_panels_ = has_bf16_ && reads_panels();
  }

  bool has(const ProductShape& shape) const override {
    const auto computes = [](DType dtype) {
      return dtype == DType::f32 || dtype == DType::tf32 || dtype == DType::bf16;
    };
    return computes(shape.operands) && computes(shape.result) && shape.m > 0 && shape.n > 0 &&
           shape.k > 0 && (shape.operands != DType::bf16 || has_bf16_);
  }

  std::optional<PanelShape> panels(DType dtype, Index n, Index k) const override {
    const bool reads =
        has_panels_ && dtype == DType::bf16 && n % kPanels.columns == 0 && k % kPanelDepth == 0;
    return reads ? std::optional(kPanels) : std::nullopt;
  }

  std::size_t prepare(const Workers& workers, const ProductShape& shape) override {
    std::size_t bytes = 0;
    for (const Ready& each : ready(shape, workers.threads())) {
      bytes += aligned(each.workspace);
    }
    return bytes;
  }

  void run(Workers& workers,
           const ProductShape& shape,
           const ProductOperands& operands) override {
    const std::vector<Ready>& parts = ready(shape, workers.threads());
    const auto count = static_cast<Index>(parts.size());
    workers.parallel_for(count, 1, [&](Index begin, Index end, int) {
      // Our threads are the threads: the library is to start none, nor keep any spinning.
      ::omp_set_num_threads(1);
      for (Index at = begin; at < end; ++at) {
        run_part(shape, parts, static_cast<std::size_t>(at), operands);
      }
    });
  }

 private:
  const std::vector<Ready>& ready(const ProductShape& shape, int threads) {
    const auto known = ready_.find(shape);
    if (known != ready_.end()) {
      return known->second;
    }
    ::omp_set_num_threads(1);
    std::vector<Ready> parts;
    try {
      for (const Part& part : parts_of(shape, threads)) {
        parts.push_back(make(shape, part));
      }
    } catch (const dnnl::error& error) {
      throw Failure({ErrorKind::device, fmt::format("oneDNN: {}", error.what())});
    }
    return ready_.emplace(shape, std::move(parts)).first->second;
  }

  // On processors without AVX-512 it has no product of bf16, and says so only when asked for
  // one.
  bool makes_bf16() const {
    ProductShape small;
    small.m = small.n = small.k = kGrain;
    small.operands = small.result = DType::bf16;
    try {
      make(small, {true, 0, kGrain});
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }

  // Whether a product of it on matrix tiles reads panels as they are.
  bool reads_panels() const {
    ProductShape small;
    small.m = small.n = small.k = kPanels.columns;
    small.b_transposed = small.b_in_panels = true;
    small.operands = small.result = DType::bf16;
    try {
      for (const bool has_bias : {false, true}) {
        small.has_bias = has_bias;
        const MatmulMemory memory = memory_of(small, {true, 0, small.m});
        const std::string name = matmul_primitive(engine_, memory, attributes_).impl_info_str();
        if (name.find("amx") == std::string::npos) {
          return false;
        }
      }
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }

  static MatmulMemory memory_of(const ProductShape& shape, const Part& part) {
    const Index m = part.of_rows ? part.count : shape.m;
    const Index n = part.of_rows ? shape.n : part.count;
    return {matrix(m, shape.k, shape.a_transposed ? shape.m : shape.k, shape.a_transposed,
                   shape.operands),
            shape.b_in_panels ? dnnl::memory::desc({shape.k, n}, type_of(shape.operands),
                                                   dnnl::memory::format_tag::BA16a64b2a)
                              : matrix(shape.k, n, shape.b_transposed ? shape.k : shape.n,
                                       shape.b_transposed, shape.operands),
            dnnl::memory::desc({1, n}, dnnl::memory::data_type::f32, dnnl::memory::dims{n, 1}),
            matrix(m, n, shape.n, false, shape.result), shape.has_bias};
  }

  Ready make(const ProductShape& shape, const Part& part) const {
    const MatmulMemory memory = memory_of(shape, part);
    const auto description = matmul_primitive(engine_, memory, attributes_);
    return {part, memory, dnnl::matmul(description), description.scratchpad_desc().get_size(),
            description.scratchpad_desc()};
  }

  static std::byte* moved(const std::byte* data, Index elements, DType dtype) {
    return const_cast<std::byte*>(data) + static_cast<std::size_t>(elements) * bytes_of(dtype);
  }

  void run_part(const ProductShape& shape,
                const std::vector<Ready>& parts,
                std::size_t at,
                const ProductOperands& operands) {
    const Ready& ready = parts[at];
    const Part& part = ready.part;
    const Index along_a = shape.a_transposed ? 1 : shape.k;
    const Index along_b = shape.b_transposed ? shape.k : 1;
    const Index rows = part.of_rows ? part.begin : 0;
    const Index columns = part.of_rows ? 0 : part.begin;
    std::byte* workspace = operands.workspace;
    for (std::size_t before = 0; before < at; ++before) {
      workspace += aligned(parts[before].workspace);
    }
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC,
         {ready.memory.a, engine_, moved(operands.a, rows * along_a, shape.operands)}},
        {DNNL_ARG_WEIGHTS,
         {ready.memory.b, engine_, moved(operands.b, columns * along_b, shape.operands)}},
        {DNNL_ARG_DST,
         {ready.memory.c, engine_, moved(operands.c, rows * shape.n + columns, shape.result)}},
        {DNNL_ARG_SCRATCHPAD, {ready.scratch, engine_, workspace}}};
    if (shape.has_bias) {
      arguments[DNNL_ARG_BIAS] = {ready.memory.bias, engine_,
                                  const_cast<float*>(operands.bias) + columns};
    }
    try {
      ready.primitive.execute(stream_, arguments);
    } catch (const dnnl::error& error) {
      throw Failure({ErrorKind::device, fmt::format("oneDNN: {}", error.what())});
    }
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive_attr attributes_;
  bool has_bf16_ = false;
  bool has_panels_ = false;
  std::map<ProductShape, std::vector<Ready>> ready_;
};

}  // namespace

std::unique_ptr<ProductLibrary> open_product_library() { return std::make_unique<OneDnn>(); }

const char* product_library_name() {
  static const std::string kName = [] {
    const dnnl_version_t* version = ::dnnl_version();
    return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
  }();
  return kName.c_str();
}

}  // namespace halfwatt::cpu
