#!/usr/bin/env bash
# Guess:        KEY=ab#cd in a file .env is the key ab#cd. As in a shell, a # begins a comment only behind a blank.
# What happens: dotenv for Node, and Node's own --env-file, cut the value at the # and say nothing. godotenv and bash
#               keep it. With quotes all four agree.
# Versions:     dotenv 18.0.10, Node 20, joho/godotenv v1.5.1, Go 1.26.8
# Who meets it: Whoever shares one .env between programs, with a generated password or key. The service answers 401.
# Date:         2026-11-29
dir=$(mktemp -d)
source "$(dirname "$0")/lib.bash"
npm_install dotenv@18.0.10
cat >.env <<'ENV'
BARE=ab#cd
QUOTED='ab#cd'
ENV
node -e 'console.log("dotenv", JSON.stringify(require("dotenv").parse(require("fs").readFileSync(".env"))))' | tee seen
node --env-file=.env -p '`node --env-file BARE ${process.env.BARE} QUOTED ${process.env.QUOTED}`' | tee -a seen
(set -a && source ./.env && echo "bash BARE $BARE QUOTED $QUOTED") | tee -a seen
go_run github.com/joho/godotenv@v1.5.1 <<'GO'
package main

import (
	"fmt"

	"github.com/joho/godotenv"
)

func main() {
	values, err := godotenv.Read(".env")
	fmt.Println("godotenv BARE", values["BARE"], "QUOTED", values["QUOTED"], err)
}
GO
seen_is <<'END'
dotenv {"BARE":"ab","QUOTED":"ab#cd"}
node --env-file BARE ab QUOTED ab#cd
bash BARE ab#cd QUOTED ab#cd
godotenv BARE ab#cd QUOTED ab#cd <nil>
END
