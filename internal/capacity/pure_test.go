package capacity

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"os"
	"strings"
	"testing"
)

// Every product of floats is rounded before it is added to anything: see mul. And
// what math has in assembly on some machines is not used.
func TestProductsAreRounded(t *testing.T) {
	fset := token.NewFileSet()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := conf.Check("capacity", fset, files, info); err != nil {
		t.Fatal(err)
	}
	isFloat := func(e ast.Expr) bool {
		tv := info.Types[e]
		b, ok := tv.Type.Underlying().(*types.Basic)
		return ok && b.Info()&types.IsFloat != 0 && tv.Value == nil // constants are exact
	}
	exact := map[string]bool{"Sqrt": true, "Abs": true, "Inf": true, "IsInf": true, "IsNaN": true, "Float64bits": true}
	products := 0
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.MUL && isFloat(n) {
					if products++; products > 1 {
						t.Errorf("%s: a product that mul doesn't round", fset.Position(n.Pos()))
					}
				}
			case *ast.AssignStmt:
				if n.Tok == token.MUL_ASSIGN && isFloat(n.Lhs[0]) {
					t.Errorf("%s: a product that mul doesn't round", fset.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "math" && !exact[n.Sel.Name] {
					t.Errorf("%s: math.%s may differ between machines", fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
	if products != 1 {
		t.Errorf("%d bare products; want the one in mul", products)
	}
}

func TestPow(t *testing.T) {
	for _, x := range []float64{0, 1e-9, 0.1, 0.5, 1, 1.5, 7, 1e6} {
		for _, a := range []float64{0, 0.01, 0.21, 0.5, 0.99, 1} {
			if got, want := pow(x, a), math.Pow(x, a); math.Abs(got-want) > 1e-6*max(1, want) && !(x == 0 && a > 0 && got < 1e-6) {
				t.Errorf("pow(%v, %v) = %v; want %v", x, a, got, want)
			}
		}
	}
}
