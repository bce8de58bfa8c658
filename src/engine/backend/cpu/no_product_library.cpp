#include "engine/backend/cpu/convolution_library.h"
#include "engine/backend/cpu/product_library.h"

namespace halfwatt::cpu {

std::unique_ptr<ProductLibrary> open_product_library() { return nullptr; }

std::unique_ptr<ConvolutionLibrary> open_convolution_library() { return nullptr; }

const char* product_library_name() { return "none"; }

}  // namespace halfwatt::cpu
