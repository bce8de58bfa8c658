#pragma once

#include <oneapi/dnnl/dnnl.hpp>

// What differs between oneDNN 2 and 3, for the one file that uses it.

namespace halfwatt::cpu {

struct MatmulMemory {
  dnnl::memory::desc a, b, bias, c;
  bool has_bias;
};

inline dnnl::matmul::primitive_desc matmul_primitive(const dnnl::engine& engine,
                                                     const MatmulMemory& memory,
                                                     const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return memory.has_bias
             ? dnnl::matmul::primitive_desc(engine, memory.a, memory.b, memory.bias, memory.c,
                                            attributes)
             : dnnl::matmul::primitive_desc(engine, memory.a, memory.b, memory.c, attributes);
#else
  const dnnl::matmul::desc description =
      memory.has_bias ? dnnl::matmul::desc(memory.a, memory.b, memory.bias, memory.c)
                      : dnnl::matmul::desc(memory.a, memory.b, memory.c);
  return {description, attributes, engine};
#endif
}

}  // namespace halfwatt::cpu
