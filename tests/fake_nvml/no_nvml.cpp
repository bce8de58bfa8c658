// A library that has the name of NVML and nothing of it.
extern "C" __attribute__((visibility("default"))) int halfwatt_is_no_nvml() { return 0; }
