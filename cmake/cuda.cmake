# HALFWATT_HAS_CUDA: whether GPU code is built. AUTO takes a CUDA toolkit from 12.4 on where one
# works with this C++ compiler, and goes on without one where none does; ON fails there instead.
set(HALFWATT_CUDA AUTO CACHE STRING "Build the GPU code: AUTO, ON or OFF")
set(HALFWATT_HAS_CUDA OFF)

# Sanitizers and libFuzzer do not see device code, and nvcc does not know their flags.
if(NOT HALFWATT_CUDA STREQUAL "OFF" AND NOT HALFWATT_SANITIZE AND NOT HALFWATT_FUZZ)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(HALFWATT_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    if(HALFWATT_NVCC)
      set(CMAKE_CUDA_COMPILER ${HALFWATT_NVCC})
    endif()
  endif()
  # Machine code for Ampere's and Hopper's cards, and code that drivers translate for others.
  set(CMAKE_CUDA_ARCHITECTURES "86-real;90a-real;80-virtual" CACHE STRING
      "The GPUs that code is built for")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.4)
      find_package(CUDAToolkit REQUIRED)
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake knows it from 3.26 on
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
      endif()
      set(HALFWATT_HAS_CUDA ON)
    else()
      message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION} found, 12.4 needed: no GPU code")
    endif()
  else()
    message(STATUS "no nvcc that works with ${CMAKE_CXX_COMPILER}: no GPU code")
  endif()
endif()
if(HALFWATT_CUDA STREQUAL "ON" AND NOT HALFWATT_HAS_CUDA)
  message(FATAL_ERROR "HALFWATT_CUDA=ON needs a CUDA toolkit from 12.4 on (nvcc), whose version "
                      "knows ${CMAKE_CXX_COMPILER}, and no sanitizer; CUDACXX names another nvcc")
endif()
