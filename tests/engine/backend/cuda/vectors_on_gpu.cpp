#include "engine/backend/cuda/gpu.h"
#include "engine/exec/vectors_device.h"

namespace halfwatt {

std::unique_ptr<Backend> vectors_backend() { return opened_gpu(); }

std::string why_no_vectors() { return why_no_cuda(); }

DType widest_float() { return DType::f32; }

double allowed(double, double on_gpu) { return on_gpu; }

}  // namespace halfwatt
