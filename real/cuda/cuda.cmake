# What the CUDA backend needs at build time. Its host code is plain C++ that loads CUDA, cuBLAS and NCCL at
# run time (real/cuda/libraries.h) and always builds. With nvcc, the kernels are compiled into one image that
# the program carries; with the vendors' headers, our declarations are compared with them.
# nvcc is run as a command: CMake 3.25 does not know C++20 for nvcc 13.

set(REHEARSE_CUDA AUTO CACHE STRING "GPU kernels: AUTO builds them where nvcc is, ON insists, OFF never does")
set_property(CACHE REHEARSE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT REHEARSE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "REHEARSE_CUDA is \"${REHEARSE_CUDA}\"; expected AUTO, ON or OFF")
endif()

# NCCL looks in the running program for its profiler (real/cuda/nccl_profiler.h).
target_link_options(rehearse_real INTERFACE "LINKER:--export-dynamic-symbol=ncclProfiler_v*")

set(said "none: REHEARSE_CUDA is OFF")
if(NOT REHEARSE_CUDA STREQUAL OFF)
  set(places ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda /opt/cuda)
  find_program(REHEARSE_NVCC nvcc HINTS ${places} PATH_SUFFIXES bin)
  find_path(REHEARSE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${places} PATH_SUFFIXES include)
  find_path(REHEARSE_CUBLAS_INCLUDE cublas_v2.h HINTS ${REHEARSE_CUDA_INCLUDE} ${places} PATH_SUFFIXES include)
  find_path(REHEARSE_NCCL_INCLUDE nccl.h HINTS ENV NCCL_HOME ${REHEARSE_CUDA_INCLUDE} ${places}
            PATH_SUFFIXES include)
  mark_as_advanced(REHEARSE_NVCC REHEARSE_CUDA_INCLUDE REHEARSE_CUBLAS_INCLUDE REHEARSE_NCCL_INCLUDE)
  if(REHEARSE_NVCC)
    execute_process(COMMAND ${REHEARSE_NVCC} --list-gpu-code OUTPUT_VARIABLE codes RESULT_VARIABLE failed
                    ERROR_QUIET)
  endif()
  if(NOT REHEARSE_NVCC OR failed)
    if(REHEARSE_CUDA STREQUAL ON)
      message(FATAL_ERROR "REHEARSE_CUDA is ON, but no working nvcc was found (set CUDA_HOME)")
    endif()
    set(said "none: no nvcc was found (set CUDA_HOME)")
  else()
    # Machine code for the data centre's generations and their workstation kin, as the toolkit allows (CUDA 13
    # dropped sm_70); PTX of the newest for what comes after.
    set(architectures "")
    foreach(number 70 75 80 86 89 90 100 120)
      if(codes MATCHES "sm_${number}(\n|$)")
        list(APPEND architectures ${number})
        list(APPEND flags -gencode arch=compute_${number},code=sm_${number})
        set(newest ${number})
      endif()
    endforeach()
    list(APPEND flags -gencode arch=compute_${newest},code=compute_${newest})
    set(directory ${PROJECT_BINARY_DIR}/real/cuda)
    file(MAKE_DIRECTORY ${directory})
    add_custom_command(
      OUTPUT ${directory}/kernels.fatbin
      COMMAND ${REHEARSE_NVCC} -fatbin -std=c++17 -O3 --expt-relaxed-constexpr --threads 2
              --compress-mode=size -Werror all-warnings -I${PROJECT_SOURCE_DIR} ${flags}
              -MD -MF ${directory}/kernels.d -o ${directory}/kernels.fatbin
              ${PROJECT_SOURCE_DIR}/real/cuda/kernels.cu
      DEPENDS ${PROJECT_SOURCE_DIR}/real/cuda/kernels.cu
      DEPFILE ${directory}/kernels.d
      COMMENT "Compiling GPU kernels" VERBATIM)
    # lld makes no object of a file without another object to tell the machine.
    find_program(GNU_LD NAMES ld.bfd ld REQUIRED)
    # The image as an object file; its symbols are _binary_kernels_fatbin_start and _end.
    add_custom_command(
      OUTPUT ${directory}/kernels.o
      COMMAND ${GNU_LD} -r -b binary -z noexecstack -o kernels.o kernels.fatbin
      DEPENDS ${directory}/kernels.fatbin
      WORKING_DIRECTORY ${directory} VERBATIM)
    set_source_files_properties(${directory}/kernels.o PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(rehearse_real PRIVATE ${directory}/kernels.o)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/real/cuda/kernel_image.cc
                 PROPERTY COMPILE_DEFINITIONS REHEARSE_HAS_KERNEL_IMAGE)
    list(JOIN architectures ", sm_" listed)
    set(said "sm_${listed} by ${REHEARSE_NVCC}")
  endif()
  if(REHEARSE_CUDA_INCLUDE AND REHEARSE_CUBLAS_INCLUDE AND REHEARSE_NCCL_INCLUDE)
    add_library(rehearse_cuda_check OBJECT ${PROJECT_SOURCE_DIR}/real/cuda/libraries_check.cc)
    target_include_directories(rehearse_cuda_check PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(rehearse_cuda_check SYSTEM PRIVATE
      ${REHEARSE_CUDA_INCLUDE} ${REHEARSE_CUBLAS_INCLUDE} ${REHEARSE_NCCL_INCLUDE})
    target_link_libraries(rehearse_cuda_check PRIVATE rehearse_sim)
    string(APPEND said "; declarations checked against ${REHEARSE_CUDA_INCLUDE} and ${REHEARSE_NCCL_INCLUDE}/nccl.h")
  endif()
endif()
message(STATUS "GPU kernels: ${said}")
