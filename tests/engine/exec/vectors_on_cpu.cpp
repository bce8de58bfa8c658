#include "engine/exec/vectors_device.h"

namespace halfwatt {

std::unique_ptr<Backend> vectors_backend() { return opened_cpu(0); }

std::string why_no_vectors() { return ""; }

DType widest_float() { return DType::f64; }

double allowed(double on_cpu, double) { return on_cpu; }

}  // namespace halfwatt
