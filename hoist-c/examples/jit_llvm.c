/*
 * A JIT compiler on LLVM's C API: a function is built instruction by instruction, LLVM's code generator makes an object of it in memory,
 * and hoist loads that. Neither ORC nor a linker has a part in it.
 *
 *     cc jit_llvm.c $(pkg-config --cflags --libs hoist) $(llvm-config-19 --cflags --ldflags --libs) -o jit_llvm
 *     ./jit_llvm 3 4 5
 *
 * It prints the square roots of 3 * 3 + 4 * 4 and of 5 * 5: 5 twice. (Debian: llvm-19-dev.)
 */
#include <hoist.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include <stdio.h>
#include <stdlib.h>

/* double f(double x, double y) { return sqrt(x * x + y * y); } */
static void build(LLVMModuleRef module) {
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef number = LLVMDoubleTypeInContext(context);
    LLVMTypeRef f_type = LLVMFunctionType(number, (LLVMTypeRef[]){number, number}, 2, 0);
    LLVMTypeRef sqrt_type = LLVMFunctionType(number, &number, 1, 0);
    LLVMValueRef f = LLVMAddFunction(module, "f", f_type), root = LLVMAddFunction(module, "sqrt", sqrt_type);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, f, ""));
    LLVMValueRef x = LLVMGetParam(f, 0), y = LLVMGetParam(f, 1);
    LLVMValueRef sum = LLVMBuildFAdd(builder, LLVMBuildFMul(builder, x, x, ""), LLVMBuildFMul(builder, y, y, ""), "");
    LLVMBuildRet(builder, LLVMBuildCall2(builder, sqrt_type, root, &sum, 1, ""));
    LLVMDisposeBuilder(builder);
}

/* The module as an object in memory. Ends the program if it cannot be. */
static LLVMMemoryBufferRef compile(LLVMModuleRef module) {
    char *triple = LLVMGetDefaultTargetTriple(), *words = NULL;
    LLVMTargetRef target = NULL;
    LLVMMemoryBufferRef object = NULL;
    int failed = LLVMVerifyModule(module, LLVMReturnStatusAction, &words);
    if (!failed) {
        LLVMDisposeMessage(words);
        failed = LLVMGetTargetFromTriple(triple, &target, &words);
    }
    if (!failed) {
        LLVMTargetMachineRef machine = LLVMCreateTargetMachine(target, triple, "generic", "", LLVMCodeGenLevelDefault,
                                                               LLVMRelocPIC, LLVMCodeModelSmall);
        LLVMSetTarget(module, triple);
        failed = LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &words, &object);
        LLVMDisposeTargetMachine(machine);
    }
    LLVMDisposeMessage(triple);
    if (failed) {
        fprintf(stderr, "jit_llvm: %s\n", words);
        exit(1);
    }
    return object;
}

int main(int argc, char **argv) {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("jit", context);
    build(module);
    LLVMMemoryBufferRef object = compile(module);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);

    hoist_error *error = NULL;
    hoist_module *loaded = NULL;
    hoist_function function = NULL;
    hoist_status status = hoist_load_memory("jit", LLVMGetBufferStart(object), LLVMGetBufferSize(object), &loaded, &error);
    LLVMDisposeMemoryBuffer(object);
    if (status == HOIST_STATUS_OK) {
        status = hoist_module_function(loaded, "f", &function, &error);
    }
    if (status != HOIST_STATUS_OK) {
        fprintf(stderr, "jit_llvm: %s\n", hoist_error_message(error));
        hoist_error_free(error);
        return 1;
    }
    double (*f)(double, double) = (double (*)(double, double))function;
    for (int i = 1; i < argc; i += 2) {
        printf("%g\n", f(atof(argv[i]), i + 1 < argc ? atof(argv[i + 1]) : 0));
    }
    hoist_module_free(loaded);
    return 0;
}
