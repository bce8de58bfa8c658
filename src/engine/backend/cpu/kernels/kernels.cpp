#include "engine/backend/cpu/kernels/kernels.h"

#include "base/check.h"

namespace halfwatt::cpu {

// Each is per_isa/table.cpp, compiled for that ISA.
#define HALFWATT_TABLE(isa)  \
  namespace isa {            \
  template <class E>         \
  const Kernels<E>& table(); \
  }

HALFWATT_TABLE(portable)
#if HALFWATT_KERNELS_X86
HALFWATT_TABLE(avx2)
HALFWATT_TABLE(avx512)
HALFWATT_TABLE(avx512_bf16)
#endif
#undef HALFWATT_TABLE

template <class E>
const Kernels<E>& kernels(Isa isa) {
  HALFWATT_CHECK(machine_has(isa), "kernels for instructions that the machine has");
#if HALFWATT_KERNELS_X86
  switch (isa) {
    case Isa::portable:
      break;
    case Isa::avx2:
      return avx2::table<E>();
    case Isa::avx512:
      return avx512::table<E>();
    case Isa::avx512_bf16:
      return avx512_bf16::table<E>();
  }
#endif
  return portable::table<E>();
}

template const Kernels<float>& kernels<float>(Isa isa);
template const Kernels<double>& kernels<double>(Isa isa);
template const Kernels<Bf16>& kernels<Bf16>(Isa isa);

}  // namespace halfwatt::cpu
